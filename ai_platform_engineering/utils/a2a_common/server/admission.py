"""Admission: verifies the metadata of a message before it is stored or run.

Afterwards `user` is verified, if a key is set for that, and its token is removed. Metadata that only a supervisor may
send was signed by one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, MutableMapping
from typing import Final

from a2a.types.a2a_pb2 import Message, SendMessageRequest
from a2a.utils.errors import InvalidParamsError
from google.protobuf.struct_pb2 import Value

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.codec.values import get_value
from ai_platform_engineering.utils.a2a_common.delegation import Delegations, drop
from ai_platform_engineering.utils.a2a_common.request_context import MAX_INSTRUCTIONS_LENGTH
from ai_platform_engineering.utils.keys import opening_key

logger = logging.getLogger(__name__)

USER: Final = "user"
USER_TOKEN: Final = "user_token"  # noqa: S105 - the name of a field
INSTRUCTIONS: Final = "instructions"
QUESTION_ONLY: Final = "question_only"
"""Metadata key of a message that must not answer a form: its client has not checked who may answer."""

Proof = Callable[[str, str], str]
"""Returns the id of the user in a token, given the id of the message."""


class Admission:
    """Verifies the messages to the server of `agent`. If a key is set, `user` is accepted only with a signature."""

    def __init__(self, settings: Settings, agent: str = SUPERVISOR) -> None:
        self._proof = _proof(settings)
        # A supervisor accepts no delegations; an agent accepts those that its supervisor has signed.
        self._delegations = None if agent == SUPERVISOR else Delegations(settings, opening_key(settings, "behind"))
        self._warned = False

    def admit(self, params: SendMessageRequest) -> None:
        """Verify and clean the metadata of a message. Raises the error for the sender if it is rejected."""
        own, outer = _fields(params.message), _fields(params)
        for metadata in (outer, own):
            if INSTRUCTIONS in metadata:
                _check_instructions(get_value(metadata[INSTRUCTIONS]))
        drop(outer)
        if self._delegations is None:
            drop(own)
        delegated = self._delegations is not None and self._delegations.admit(params.message)
        token = _take(own, USER_TOKEN)
        if self._proof is None:
            if token is not None:
                self._warn()
            return
        _take(outer, USER)
        if token is not None:
            own[USER].string_value = self._proof(token, params.message.message_id)
        elif not delegated:
            _take(own, USER)

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("A client sends signed user ids, but no key is set to verify them: set USER_SIGNING_KEY.")


def is_question_only(message: Message) -> bool:
    fields = _fields(message)
    return QUESTION_ONLY in fields and fields[QUESTION_ONLY].bool_value


def _proof(settings: Settings) -> Proof | None:
    if settings.user_signing_key is None and settings.a2a_auth_shared_key is None:
        return None
    # Imported on demand: cryptography is slow to load.
    from ai_platform_engineering.utils.users import UserTokenError, read_user, signing_key  # noqa: PLC0415

    key = signing_key(settings) or ""

    def read(token: str, message_id: str) -> str:
        try:
            return read_user(key, token, message_id=message_id, now=time.time()).id
        except UserTokenError as error:
            raise InvalidParamsError(message=f"message.metadata.{USER_TOKEN}: {error}") from None

    return read


def _fields(carrier: Message | SendMessageRequest) -> MutableMapping[str, Value]:
    # Protobuf creates missing metadata when they are read.
    return carrier.metadata.fields if carrier.HasField("metadata") else {}


def _take(fields: MutableMapping[str, Value], name: str) -> str | None:
    """Remove a field and return its text. (Protobuf creates a missing field when it is read.)"""
    if name not in fields:
        return None
    text = fields[name].string_value
    del fields[name]
    return text


def _check_instructions(instructions: object) -> None:
    if not isinstance(instructions, str) or len(instructions) > MAX_INSTRUCTIONS_LENGTH:
        raise InvalidParamsError(
            message=f"message.metadata.{INSTRUCTIONS}: must be a text of at most {MAX_INSTRUCTIONS_LENGTH} characters."
        )
