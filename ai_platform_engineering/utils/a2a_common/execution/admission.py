"""Admission: what a message says of who asks, and of what its place wants, is checked before anything is made of it.

Afterwards its metadata say what is true: `user` is somebody who can be believed, and the token that proved it is gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from a2a.types.a2a_pb2 import SendMessageRequest
from a2a.utils.errors import InvalidParamsError

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.codec.values import get_fields
from ai_platform_engineering.utils.a2a_common.request_context import LONGEST_INSTRUCTIONS

logger = logging.getLogger(__name__)

USER: Final = "user"
USER_TOKEN: Final = "user_token"  # noqa: S105 - the name of a field
INSTRUCTIONS: Final = "instructions"

Proof = Callable[[str, str], str]
"""The id of the user that a token names, for the message with an id."""


class Admission:
    """One per server, that of `agent`. With a key set, nobody is believed to be somebody without a signature."""

    def __init__(self, settings: Settings, agent: str = SUPERVISOR) -> None:
        self._proof = _proof(settings)
        # An agent is told by its supervisor, which had it proved.
        self._believes_supervisors = agent != SUPERVISOR
        self._warned = False

    def admit(self, params: SendMessageRequest) -> None:
        """Raises what the sender is told, where the message cannot be taken."""
        own, around = params.message.metadata.fields, params.metadata.fields
        if INSTRUCTIONS in own or INSTRUCTIONS in around:
            _check_instructions(get_fields(params.metadata) | get_fields(params.message.metadata))
        token = own[USER_TOKEN].string_value if USER_TOKEN in own else None
        own.pop(USER_TOKEN, None)
        if self._proof is None:
            if token is not None:
                self._warn()
        elif token is not None:
            own[USER].string_value = self._proof(token, params.message.message_id)
        elif not (self._believes_supervisors and "delegated" in own and own["delegated"].bool_value):
            own.pop(USER, None)
        if self._proof is not None:
            around.pop(USER, None)

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("A client signs who asks, but no key is set here to check it: set USER_SIGNING_KEY.")


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


def _check_instructions(marks: dict[str, Any]) -> None:
    instructions = marks[INSTRUCTIONS]
    if not isinstance(instructions, str) or len(instructions) > LONGEST_INSTRUCTIONS:
        raise InvalidParamsError(
            message=f"message.metadata.{INSTRUCTIONS}: must be a text of at most {LONGEST_INSTRUCTIONS} characters."
        )
