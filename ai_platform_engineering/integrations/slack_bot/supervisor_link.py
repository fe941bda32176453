"""The way to the supervisor, found when it is first needed and again when it was lost, and who vouches for people."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any, Final

import httpx

from ai_platform_engineering.integrations.slack_bot.places import Incoming, Person
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor, connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.access_tokens import SupervisorAuth
from ai_platform_engineering.utils.users import User, sign_user, signing_key

_MAX_PAUSE: Final = 2.0
_MISSED_SECONDS: Final = 0.5
_FEEDBACK_SECONDS: Final = 10.0


class SupervisorLink:
    def __init__(self, settings: Settings) -> None:
        self.address = settings.supervisor_url
        self.timeout = settings.supervisor_timeout
        self._key = signing_key(settings)
        self._auth = SupervisorAuth(settings)
        self._stack = AsyncExitStack()
        self._found: Supervisor | None = None
        self._finding = asyncio.Lock()
        self._missed: SupervisorError | None = None
        self._missed_at = 0.0

    async def supervisor(self, *, patient: bool = True) -> Supervisor:
        """The supervisor. Raises `SupervisorError` where there is none, after a while if `patient`."""
        deadline = time.monotonic() + (self.timeout if patient else 0.0)
        pause = 0.2
        while True:
            try:
                return await self._find()
            except SupervisorError as error:
                if error.misconfigured or time.monotonic() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(_MAX_PAUSE, 2 * pause)

    async def _find(self) -> Supervisor:
        async with self._finding:
            if self._found is not None:
                return self._found
            # One try is for everybody who waits.
            if self._missed is not None and time.monotonic() < self._missed_at + _MISSED_SECONDS:
                raise self._missed
            try:
                found = await self._stack.enter_async_context(connected(self.address, self._auth))
            except SupervisorError as error:
                self._missed, self._missed_at = error, time.monotonic()
                raise
            self._found = found
            return found

    def metadata(self, message_id: str, person: Person, incoming: Incoming) -> dict[str, Any]:
        """What goes with a message: who sends it, and what the channel wants. None of it is part of the question."""
        name = "user" if self._key is None else "user_token"
        marks: dict[str, Any] = {name: self.vouched(person, message_id)}
        if incoming.instructions:
            marks["instructions"] = incoming.instructions
        if incoming.quiet:
            marks["silent_when_unsure"] = True
        return marks

    def vouched(self, person: Person, about: str) -> str:
        """Who it is, signed for what it is `about` where there is a key: a message, or the trace that is rated."""
        user = User(f"slack:{person.team}/{person.id}")
        return user.id if self._key is None else sign_user(self._key, user, message_id=about, now=time.time())

    async def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """Call one of the supervisor's own routes."""
        async with httpx.AsyncClient(auth=self._auth, timeout=_FEEDBACK_SECONDS) as http:
            return await http.post(self.address.rstrip("/") + path, json=body)

    async def get(self, path: str) -> Any:
        async with httpx.AsyncClient(auth=self._auth, timeout=_FEEDBACK_SECONDS) as http:
            response = await http.get(self.address.rstrip("/") + path)
            return response.raise_for_status().json()

    async def aclose(self) -> None:
        await self._stack.aclose()
