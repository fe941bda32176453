"""Gives the SDK's request handler access to the event log."""

from __future__ import annotations

from a2a.server.context import ServerCallContext
from a2a.server.tasks import TaskStore
from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, Task
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError, UnsupportedOperationError

from ai_platform_engineering.audit.access import NOT_THEIR_CONVERSATION, AccessAudit
from ai_platform_engineering.identity.access import sees_everything
from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.storage.event_log.event_log import EventLog, TaskQuery
from ai_platform_engineering.utils.a2a_common.server.page_tokens import page_token, read_page_token


class LogTaskStore(TaskStore):
    """Read-only: tasks change only when events are appended to the log. Callers see their own tasks and shared ones."""

    def __init__(self, log: EventLog, audit: AccessAudit) -> None:
        self._log = log
        self._audit = audit

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        task = await self._log.task(task_id)
        if task is None or sees_everything(caller := caller_in(context.state)):
            return task
        access = await self._log.access(task.context_id)
        if access is not None and access.allows(caller):
            return task
        self._audit.denied(caller, NOT_THEIR_CONVERSATION, conversation=task.context_id)
        return None

    async def save(self, task: Task, context: ServerCallContext) -> None:
        raise UnsupportedOperationError(message="Tasks cannot be saved; they are computed from their events.")

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
        page = await self._log.tasks(
            TaskQuery(
                context_id=params.context_id or None,
                state=params.status or None,
                changed_since_ns=(
                    params.status_timestamp_after.ToNanoseconds() if params.HasField("status_timestamp_after") else None
                ),
                after=_position(params.page_token) if params.page_token else None,
                limit=size,
                viewer=caller_in(context.state),
            )
        )
        return ListTasksResponse(
            tasks=page.tasks,
            total_size=page.total,
            page_size=size,
            next_page_token=page_token(page.next) if page.next else "",
        )

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        raise UnsupportedOperationError(message="Single tasks cannot be deleted; old tasks are pruned automatically.")


def _position(token: str) -> tuple[int, str]:
    position = read_page_token(token)
    if position is None:
        raise InvalidParamsError(message="pageToken: not a token of this server.")
    return position
