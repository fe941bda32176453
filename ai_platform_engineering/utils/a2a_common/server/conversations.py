"""Deletes conversations: the tasks and events of the log, and the checkpoints. `DELETE /conversations/{id}`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from a2a.types.a2a_pb2 import CancelTaskRequest, Task
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.storage.event_log.event_log import EventLog, TaskQuery
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES, WAITING_STATES
from ai_platform_engineering.utils.a2a_common.server.calls import call_context
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import Forget
from ai_platform_engineering.utils.a2a_common.server.request_handler import LogRequestHandler
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

_PAGE: Final = 50
_FORCE_VALUES: Final = {"": False, "false": False, "true": True}


class UnknownConversationError(ReadableError):
    def __init__(self, context_id: str) -> None:
        super().__init__(f"There is no conversation {context_id!r}.")


class ConversationOpenError(ReadableError):
    """A task of the conversation has not ended."""

    def __init__(self, context_id: str, tasks: Sequence[Task]) -> None:
        task = tasks[0]
        state = "waits for an answer" if task.status.state in WAITING_STATES else "is running"
        super().__init__(
            f"Task {task.id} of the conversation {context_id} {state}. Wait for its end, or cancel it with the "
            "deletion: `force=true` in the request, `--force` on the command line."
        )


async def open_tasks(log: EventLog, context_id: str) -> list[Task]:
    """The tasks of a conversation that have not ended. Raises `UnknownConversationError` if it has no task at all."""
    page = await log.tasks(TaskQuery(context_id=context_id, limit=_PAGE))
    if not page.total:
        raise UnknownConversationError(context_id)
    tasks = page.tasks
    while page.next is not None:
        page = await log.tasks(TaskQuery(context_id=context_id, after=page.next, limit=_PAGE))
        tasks += page.tasks
    return [task for task in tasks if task.status.state not in TERMINAL_STATES]


class ConversationRoutes:
    """`forget` gives the function that deletes checkpoints; it is called while the app runs."""

    def __init__(self, handler: LogRequestHandler, forget: Callable[[], Forget]) -> None:
        self._handler = handler
        self._forget = forget

    def routes(self) -> list[Route]:
        return [Route("/conversations/{id}", self._delete, methods=["DELETE"])]

    async def _delete(self, request: Request) -> Response:
        context_id: str = request.path_params["id"]
        force = _FORCE_VALUES.get(request.query_params.get("force", ""))
        if force is None:
            return _problem(400, "invalid_request", "force: must be true or false.")
        try:
            count = await self._delete_conversation(request, context_id, force=force)
        except UnknownConversationError as error:
            return _problem(404, "not_found", str(error))
        except ConversationOpenError as error:
            return _problem(409, "conflict", str(error))
        logger.info("conversation %s was deleted, with %d tasks", context_id, count)
        return JSONResponse({"id": context_id, "deleted_tasks": count})

    async def _delete_conversation(self, request: Request, context_id: str, *, force: bool) -> int:
        log, work = self._handler.log, self._handler.work
        # A message that arrives meanwhile waits. Its task stays, and begins the conversation anew.
        async with work.paused(context_id):
            unfinished = await open_tasks(log, context_id)
            if unfinished and not force:
                raise ConversationOpenError(context_id, unfinished)
            for task in unfinished:
                with suppress(TaskNotCancelableError, TaskNotFoundError):  # it has ended meanwhile
                    await self._handler.on_cancel_task(CancelTaskRequest(id=task.id), call_context(request, "1.0"))
            await work.join(context_id)
            # The checkpoints first: after a crash in between, the conversation is still listed and can be deleted.
            await self._forget()([context_id])
            count = await log.delete_conversation(context_id)
            await self._handler.pushes.prune()
            return count


def _problem(code: int, error: str, sentence: str) -> Response:
    return JSONResponse({"error": error, "message": sentence}, status_code=code)
