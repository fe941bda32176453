"""The SDK's view of the event log: reading folds it, saving adds nothing the log has already."""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

from a2a.server.context import ServerCallContext
from a2a.server.tasks import TaskStore
from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, Task, TaskState
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError, UnsupportedOperationError

from ai_platform_engineering.events import Canceled, Failed
from ai_platform_engineering.utils.a2a_common.log.event_log import EventLog, TaskQuery
from ai_platform_engineering.utils.a2a_common.log.task_closing import closing
from ai_platform_engineering.utils.a2a_common.log.task_fold import TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.wire import StreamState

BROKEN_OFF = Failed(code="internal_error", message="An internal error ended the work. The server's log says why.")


class LogTaskStore(TaskStore):
    """Tasks are created here if the log does not know them; their later states come from the log's own events."""

    def __init__(self, log: EventLog, agent: str) -> None:
        self._log = log
        self._agent = agent

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        return await self._log.task(task_id)

    async def save(self, task: Task, context: ServerCallContext) -> None:
        known = await self._log.state(task.id)
        if known is None:
            await self._log.create(task)
        elif task.status.state in TERMINAL_STATES and known not in TERMINAL_STATES:
            # The SDK ends a task by itself when the executor did not: it was canceled before it ran, or broke.
            # Followers wait for the end, so it has to be in the log.
            canceled = task.status.state == TaskState.TASK_STATE_CANCELED
            state = StreamState(task.id, task.context_id, trace_id="", agent=self._agent)
            kept = [entry.event for entry in await self._log.read(task.id)]
            await self._log.append(task.id, closing(state, kept, Canceled() if canceled else BROKEN_OFF))

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        size = params.page_size or DEFAULT_LIST_TASKS_PAGE_SIZE
        page = await self._log.tasks(
            TaskQuery(
                context_id=params.context_id or None,
                state=params.status or None,
                changed_since_ns=(
                    params.status_timestamp_after.ToNanoseconds() if params.HasField("status_timestamp_after") else None
                ),
                after=_place(params.page_token) if params.page_token else None,
                limit=size,
            )
        )
        return ListTasksResponse(
            tasks=page.tasks,
            total_size=page.total,
            page_size=size,
            next_page_token=_token(page.next) if page.next else "",
        )

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        raise UnsupportedOperationError(message="Tasks are not deleted one by one; old ones are dropped by themselves.")


def _token(place: tuple[int, str]) -> str:
    return urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _place(token: str) -> tuple[int, str]:
    try:
        changed_ns, task_id = json.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        changed_ns = task_id = None
    if type(changed_ns) is not int or not isinstance(task_id, str):
        raise InvalidParamsError(message="pageToken: not a token that this server gave out.")
    return changed_ns, task_id
