"""Admission: what a message says of who asks, and of what its place wants, is checked before anything is made of it.

Afterwards its metadata say what is true: `user` is somebody who can be believed, the token that proved it is gone, and
what only a supervisor may say was signed by one.
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
"""On a message that must not become the answer to a form: whoever sends it has not looked who may answer."""

Proof = Callable[[str, str], str]
"""The id of the user that a token names, for the message with an id."""


class Admission:
    """One per server, that of `agent`. With a key set, nobody is believed to be somebody without a signature."""

    def __init__(self, settings: Settings, agent: str = SUPERVISOR) -> None:
        self._proof = _proof(settings)
        # A supervisor takes delegations from no caller; an agent takes those that its supervisor has signed.
        self._delegations = None if agent == SUPERVISOR else Delegations(settings, opening_key(settings, "behind"))
        self._warned = False

    def admit(self, params: SendMessageRequest) -> None:
        """Raises what the sender is told, where the message cannot be taken."""
        own, around = _fields(params.message), _fields(params)
        for marks in (around, own):
            if INSTRUCTIONS in marks:
                _check_instructions(get_value(marks[INSTRUCTIONS]))
        drop(around)
        if self._delegations is None:
            drop(own)
        delegated = self._delegations is not None and self._delegations.admit(params.message)
        token = _take(own, USER_TOKEN)
        if self._proof is None:
            if token is not None:
                self._warn()
            return
        _take(around, USER)
        if token is not None:
            own[USER].string_value = self._proof(token, params.message.message_id)
        elif not delegated:
            _take(own, USER)

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("A client signs who asks, but no key is set here to check it: set USER_SIGNING_KEY.")


def is_question_only(message: Message) -> bool:
    fields = _fields(message)
    return QUESTION_ONLY in fields and fields[QUESTION_ONLY].bool_value


def _proof(settings: Settings) -> Proof | None:
    if settings.user_signing_key is None and settings.a2a_auth_shared_key is None:
        return None
    # Cryptography takes a while to load, which is of no use where nobody signs.
    from ai_platform_engineering.utils.users import UserTokenError, read_user, signing_key  # noqa: PLC0415

    key = signing_key(settings) or ""

    def read(token: str, message_id: str) -> str:
        try:
            return read_user(key, token, message_id=message_id, now=time.time()).id
        except UserTokenError as error:
            raise InvalidParamsError(message=f"message.metadata.{USER_TOKEN}: {error}") from None

    return read


def _fields(described: Message | SendMessageRequest) -> MutableMapping[str, Value]:
    # Looking at metadata that are not there would put them there.
    return described.metadata.fields if described.HasField("metadata") else {}


def _take(fields: MutableMapping[str, Value], name: str) -> str | None:
    """The text of a field, which is gone then. (Asking a map of messages for what it does not have makes it.)"""
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
