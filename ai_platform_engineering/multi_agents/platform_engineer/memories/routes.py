"""The route `/memories`: GET lists the caller's memories, DELETE forgets all of them or one.

A bot names the user in the header `X-User`, with a token that it has signed for `memories`. Where no authentication is
required, the header has the plain name of a user.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.identity.principal import ANONYMOUS, caller_in
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.memories.memories import Memories
from ai_platform_engineering.storage.memories.memory import (
    MAX_MEMORIES,
    MemoriesUnavailableError,
    UnknownMemoryError,
    owner_of,
)
from ai_platform_engineering.utils.a2a_common.request_context import bounded_user
from ai_platform_engineering.utils.a2a_common.server.statements import Statements, stated_principal
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

PATH: Final = "/memories"
USER_HEADER: Final = "X-User"
SIGNED_FOR: Final = "memories"

Work = Callable[[Memories, str, Request], Awaitable[dict[str, Any]]]


class UserHeaderError(ReadableError):
    """The header does not prove a user."""


class MemoryRoutes:
    """`memories` gives the store while the app runs, and None otherwise."""

    def __init__(self, settings: Settings, memories: Callable[[], Memories | None], audit: Audit = NO_AUDIT) -> None:
        self._statements = Statements(settings)
        self._audit = audit
        self._memories = memories

    def routes(self) -> list[Route]:
        return [
            Route(PATH, self._answer(_list), methods=["GET"]),
            Route(PATH, self._answer(_forget_all), methods=["DELETE"]),
            Route(f"{PATH}/{{id}}", self._answer(_forget), methods=["DELETE"]),
        ]

    def _answer(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            memories = self._memories()
            if memories is None:
                return _problem(503, "unavailable", "The server is starting or stopping. Try again in a moment.")
            try:
                owner = self._owner(request)
                if owner is None:
                    return _problem(403, "forbidden", "The access token has no subject, so it has no memories.")
                body = await work(memories, owner, request)
                if request.method == "DELETE":
                    target = f"memory {request.path_params['id']}" if "id" in request.path_params else "all memories"
                    caller = caller_in(request.scope.get("state"))
                    self._audit.record(AuditFact("data_deleted", caller, target=f"{target} of {owner}"))
                return JSONResponse(body)
            except UserHeaderError as error:
                return _problem(400, "invalid_request", str(error))
            except UnknownMemoryError as error:
                return _problem(404, "not_found", str(error))
            except MemoriesUnavailableError as error:
                return _problem(503, "unavailable", str(error))

        return answer

    def _owner(self, request: Request) -> str | None:
        """The owner of the memories that the caller may use."""
        caller, named = caller_in(request.scope.get("state")), request.headers.get(USER_HEADER, "").strip()
        if not named:
            return owner_of(caller, None)
        if self._statements.may_speak_for_users(caller):
            try:
                user = self._statements.user(caller, named, SIGNED_FOR)
            except ReadableError as error:
                raise UserHeaderError(f"{USER_HEADER}: must be signed for {SIGNED_FOR!r}. {error}") from None
            return owner_of(stated_principal(caller, user), None)
        if caller != ANONYMOUS:
            raise UserHeaderError(f"{USER_HEADER}: only a bot may name a user. Leave the header out.")
        return owner_of(ANONYMOUS, bounded_user(named))


async def _list(memories: Memories, owner: str, _request: Request) -> dict[str, Any]:
    found = await memories.list_all(owner)
    return {"memories": [memory.facts() for memory in found], "max_memories": MAX_MEMORIES}


async def _forget(memories: Memories, owner: str, request: Request) -> dict[str, Any]:
    return (await memories.forget(owner, request.path_params["id"])).facts()


async def _forget_all(memories: Memories, owner: str, _request: Request) -> dict[str, Any]:
    return {"forgotten": await memories.forget_all(owner)}


def _problem(code: int, error: str, sentence: str) -> Response:
    return JSONResponse({"error": error, "message": sentence}, status_code=code)
