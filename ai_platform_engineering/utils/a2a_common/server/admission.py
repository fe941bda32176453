"""Admission: verifies the metadata of a message before it is stored or run, and who sends it.

A bot states for which user it sends a message with a signed token. Metadata that only a supervisor may send was signed
by one.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a.types.a2a_pb2 import Message, SendMessageRequest
from a2a.utils.errors import InvalidParamsError
from google.protobuf.struct_pb2 import Value

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.policy.loading import load_policy
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.codec.parts import message_digest
from ai_platform_engineering.utils.a2a_common.codec.values import get_value
from ai_platform_engineering.utils.a2a_common.delegation import Delegations, drop
from ai_platform_engineering.utils.a2a_common.request_context import MAX_INSTRUCTIONS_LENGTH
from ai_platform_engineering.utils.a2a_common.server.statements import Statements, stated_principal
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.keys import opening_key

if TYPE_CHECKING:
    from ai_platform_engineering.utils.users import User

logger = logging.getLogger(__name__)

USER: Final = "user"
USER_TOKEN: Final = "user_token"  # noqa: S105 - the name of a field
INSTRUCTIONS: Final = "instructions"
QUESTION_ONLY: Final = "question_only"
"""Metadata key of a message that must not answer a form: its client has not checked who may answer."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends a message. A conversation that begins with it is shared with `groups`."""

    principal: Principal
    groups: frozenset[str] = frozenset()


class Admission:
    """Verifies the messages to the server of `agent`."""

    def __init__(self, settings: Settings, agent: str = SUPERVISOR) -> None:
        self._statements = Statements(settings)
        self._policy = load_policy(settings)
        # A supervisor accepts no delegations; an agent accepts those that its supervisor has signed.
        self._delegations = None if agent == SUPERVISOR else Delegations(settings, opening_key(settings, agent))
        self._warned = False

    def admit(self, params: SendMessageRequest, caller: Principal) -> Sender:
        """Verify and clean the metadata of a message. Raises the error for the sender if it is rejected.

        Afterwards `user` is there only if it is verified, or if nothing can be verified because the server requires no
        authentication.
        """
        own, outer = _fields(params.message), _fields(params)
        for metadata in (outer, own):
            if INSTRUCTIONS in metadata:
                _check_instructions(get_value(metadata[INSTRUCTIONS]))
        drop(outer)
        if self._delegations is None:
            drop(own)
        delegated = self._delegations is not None and self._delegations.admit(params.message)
        token = _take(own, USER_TOKEN)
        if token is not None and self._statements.may_speak_for_users(caller):
            user = self._user(caller, token, params.message)
            _take(outer, USER)
            params.message.metadata.fields[USER].string_value = user.id
            _name_conversation(params.message, user.id)
            return Sender(self._policy.with_groups(stated_principal(caller, user)), user.shared_with)
        if token is not None:
            self._warn(caller)
        if not delegated and (caller != ANONYMOUS or self._statements.has_signing_key):
            _take(outer, USER)
            _take(own, USER)
            if caller.verified_by == "token" and caller.subject is not None:
                params.message.metadata.fields[USER].string_value = caller.subject
        return Sender(caller)

    def _user(self, caller: Principal, token: str, message: Message) -> User:
        try:
            return self._statements.user(caller, token, message.message_id, message_digest(message))
        except ReadableError as error:
            raise InvalidParamsError(message=f"message.metadata.{USER_TOKEN}: {error}") from None

    def _warn(self, caller: Principal) -> None:
        if not self._warned:
            self._warned = True
            reason = "no key is set to verify them: set USER_SIGNING_KEY"
            if caller != ANONYMOUS:
                reason = f"{caller.subject} may not speak for users: give its key the role bot, or set USER_SIGNING_KEY"
            logger.warning("A client sends signed user ids, but %s.", reason)


def is_question_only(message: Message) -> bool:
    fields = _fields(message)
    return QUESTION_ONLY in fields and fields[QUESTION_ONLY].bool_value


def _name_conversation(message: Message, user: str) -> None:
    """Give a signed message without a conversation one that follows from its id: if the message is sent again, it is
    found there, so a statement is used once."""
    if not message.context_id and not message.task_id:
        message.context_id = str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([user, message.message_id])))


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
