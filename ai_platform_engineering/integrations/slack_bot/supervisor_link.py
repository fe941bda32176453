"""The connection to the supervisor, opened on first use, and the signed identity of the people who write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, Final

import httpx
from a2a.types.a2a_pb2 import Message

from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor, connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.a2a_common.codec.parts import message_digest
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth
from ai_platform_engineering.utils.users import User, sign_user, signing_key

_MAX_PAUSE: Final = 2.0
_FAILURE_SECONDS: Final = 0.5
_REST_SECONDS: Final = 10.0
_DIRECT_MESSAGE: Final = "D"
"""Slack's ids of direct messages begin with it."""


def _members(place: ThreadPlace) -> Iterator[str]:
    """The group of the people in a channel. They share its threads; a direct message has one person."""
    if not place.channel.startswith(_DIRECT_MESSAGE):
        yield f"slack:{place.team}/{place.channel}"


class SupervisorLink:
    def __init__(self, settings: Settings) -> None:
        self.address = settings.supervisor_url
        self.timeout = settings.supervisor_timeout
        self._key = signing_key(settings)
        self._auth = SupervisorAuth(settings)
        self._stack = AsyncExitStack()
        self._supervisor: Supervisor | None = None
        self._lock = asyncio.Lock()
        self._failure: SupervisorError | None = None
        self._failed_at = 0.0

    async def supervisor(self, *, wait: bool = True) -> Supervisor:
        """The connected supervisor. Raises `SupervisorError` if it is unreachable: after the timeout, or at once
        without `wait`."""
        deadline = time.monotonic() + (self.timeout if wait else 0.0)
        pause = 0.2
        while True:
            try:
                return await self._connect()
            except SupervisorError as error:
                if error.misconfigured or time.monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(_MAX_PAUSE, 2 * pause)

    async def _connect(self) -> Supervisor:
        async with self._lock:
            if self._supervisor is not None:
                return self._supervisor
            # One failed attempt counts for all callers that were waiting.
            if self._failure is not None and time.monotonic() < self._failed_at + _FAILURE_SECONDS:
                raise self._failure
            try:
                found = await self._stack.enter_async_context(connected(self.address, self._auth))
            except SupervisorError as error:
                self._failure, self._failed_at = error, time.monotonic()
                raise
            self._supervisor = found
            return found

    def signed(self, message: Message, person: SlackUser, incoming: Incoming) -> Message:
        """The message with its sender, signed together with its content if there is a signing key."""
        name = "user" if self._key is None else "user_token"
        channel = frozenset(_members(incoming.place))
        user = User(f"slack:{person.team}/{person.id}", groups=channel, shared_with=channel)
        message.metadata[name] = self._signed(user, message.message_id, message_digest(message))
        return message

    def metadata(self, incoming: Incoming) -> dict[str, Any]:
        """The metadata of a message beside its sender, for example the channel's instructions."""
        metadata: dict[str, Any] = {}
        if incoming.instructions:
            metadata["instructions"] = incoming.instructions
        if incoming.quiet:
            metadata["silent_when_unsure"] = True
        return metadata

    def signed_user(self, person: SlackUser, about: str) -> str:
        """The user id of a person; with a signing key, signed for `about`: for example the trace of a rating."""
        return self._signed(User(f"slack:{person.team}/{person.id}"), about)

    def _signed(self, user: User, about: str, digest: str = "") -> str:
        if self._key is None:
            return user.id
        return sign_user(self._key, user, message_id=about, now=time.time(), digest=digest)

    async def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """POST to one of the supervisor's REST routes."""
        async with httpx.AsyncClient(auth=self._auth, timeout=_REST_SECONDS) as http:
            return await http.post(self.address.rstrip("/") + path, json=body)

    async def get(self, path: str) -> Any:
        async with httpx.AsyncClient(auth=self._auth, timeout=_REST_SECONDS) as http:
            response = await http.get(self.address.rstrip("/") + path)
            return response.raise_for_status().json()

    async def aclose(self) -> None:
        await self._stack.aclose()
