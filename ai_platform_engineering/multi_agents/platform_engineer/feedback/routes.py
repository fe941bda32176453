"""The route `/feedback`: POST stores feedback on an answer, GET lists the newest that the caller may see."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from a2a.utils.errors import A2AError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.identity.access import sees_everything
from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.multi_agents.platform_engineer.feedback.forwarding import FeedbackForwarder
from ai_platform_engineering.multi_agents.platform_engineer.feedback.langfuse import Langfuse
from ai_platform_engineering.multi_agents.platform_engineer.feedback.store import FeedbackStoreError, open_feedback
from ai_platform_engineering.multi_agents.platform_engineer.feedback.submission import (
    MAX_BODY_SIZE,
    SubmissionError,
    feedback_user,
    read_submission,
)
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.server.request_body import PayloadTooLargeError, read_json
from ai_platform_engineering.utils.a2a_common.server.statements import Statements

logger = logging.getLogger(__name__)

PATH: Final = "/feedback"
_MAX_LISTED: Final = 1000
_LISTED: Final = 50


class FeedbackRoutes:
    """Stores and forwards feedback. Use `running` while the routes are served."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._statements = Statements(settings)
        self._store = open_feedback(settings)
        langfuse = Langfuse.of(settings)
        self._forwarder = FeedbackForwarder(self._store, langfuse) if langfuse else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            if self._forwarder is None:
                yield
            else:
                async with self._forwarder.running():
                    yield
        finally:
            await asyncio.to_thread(self._store.close)

    def routes(self) -> list[Route]:
        return [
            Route(PATH, self._post, methods=["POST"]),
            Route(PATH, self._list, methods=["GET"]),
        ]

    async def _post(self, request: Request) -> Response:
        try:
            body = await read_json(request, min(MAX_BODY_SIZE, self._settings.max_request_bytes))
            feedback = read_submission(body, caller_in(request.scope.get("state")), self._statements)
            is_new = await asyncio.to_thread(self._store.store, feedback)
        except ClientDisconnect:
            return Response(status_code=400)
        except PayloadTooLargeError:
            return _problem(413, f"Feedback may have at most {MAX_BODY_SIZE} bytes.")
        except A2AError as error:
            return _problem(400, error.message)
        except SubmissionError as error:
            return _problem(400, str(error))
        except FeedbackStoreError as error:
            return _unavailable(error)
        if self._forwarder is not None:
            self._forwarder.wake()
        return JSONResponse({"id": feedback.id, "replaced": not is_new}, status_code=201 if is_new else 200)

    async def _list(self, request: Request) -> Response:
        wanted = request.query_params.get("limit", str(_LISTED))
        if not (wanted.isascii() and wanted.isdigit() and len(wanted) < 6 and 0 < int(wanted) <= _MAX_LISTED):
            return _problem(400, f"limit: must be a whole number from 1 to {_MAX_LISTED}.")
        try:
            found = await asyncio.to_thread(self._store.newest, int(wanted), _visible_user(request))
        except FeedbackStoreError as error:
            return _unavailable(error)
        return JSONResponse({"feedback": [feedback.facts() for feedback in found]})


def _visible_user(request: Request) -> str | None:
    """The user whose feedback the caller may see; None for all."""
    caller = caller_in(request.scope.get("state"))
    return None if sees_everything(caller) else feedback_user(caller)


def _problem(code: int, sentence: str) -> Response:
    return JSONResponse({"error": "invalid_request", "message": sentence}, status_code=code)


def _unavailable(error: FeedbackStoreError) -> Response:
    logger.error("%s", error)
    sentence = "Feedback cannot be stored at the moment. The server's log has the reason."
    return JSONResponse({"error": "unavailable", "message": sentence}, status_code=503)
