"""Statements of bots: a signed token says for which user a bot sends a message, rates an answer or reads memories."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.server.auth import key_holder
from ai_platform_engineering.utils.keys import supervisor_keys

if TYPE_CHECKING:
    from ai_platform_engineering.utils.users import User


class Statements:
    """Verifies the statements of callers with `USER_SIGNING_KEY`, or with the key of the bot that makes it."""

    def __init__(self, settings: Settings) -> None:
        key = settings.user_signing_key
        self._signing_key = key.get_secret_value() if key is not None else None
        self._keys = {key_holder(key).subject: key.value for key in supervisor_keys(settings)}

    @property
    def has_signing_key(self) -> bool:
        """Whether a user is believed only with a signature, also where no authentication is required."""
        return self._signing_key is not None

    def may_speak_for_users(self, caller: Principal) -> bool:
        return self._key_of(caller) is not None

    def user(self, caller: Principal, token: str, about: str, digest: str = "") -> User:
        """The user in a token that the caller has signed for `about`, for example the id of a message, with the content
        of `digest`. Raises `UserTokenError`."""
        # Imported on demand: cryptography is slow to load.
        from ai_platform_engineering.utils.users import UserTokenError, read_user  # noqa: PLC0415

        key = self._key_of(caller)
        if key is None:
            raise UserTokenError("Its sender may not speak for users: its key does not have the role bot.")
        return read_user(key, token, message_id=about, now=time.time(), digest=digest)

    def _key_of(self, caller: Principal) -> str | None:
        if self._signing_key is not None:
            return self._signing_key
        return self._keys.get(caller.subject) if caller.is_bot and caller.verified_by == "key" else None


def stated_principal(caller: Principal, user: User) -> Principal:
    """The principal that the caller speaks for. It does not have the roles of the caller."""
    return Principal("statement", user.id, user.groups, via=caller.owner or None)
