"""The routes `/conversations` and `/conversations/{id}`: GET lists conversations or reads one, PATCH renames or shares
one, DELETE deletes one with its checkpoints. Callers see their own conversations and shared ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from a2a.types.a2a_pb2 import CancelTaskRequest, Task
from a2a.utils.errors import A2AError, TaskNotCancelableError, TaskNotFoundError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.audit.access import NOT_THEIR_CONVERSATION, AccessAudit
from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.identity.access import ConversationAccess, may_share
from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.storage.event_log.conversations import ConversationQuery, search_words
from ai_platform_engineering.storage.event_log.event_log import EventLog, TaskQuery
from ai_platform_engineering.storage.event_log.log_errors import LogClosedError, LogReadError, LogWriteError
from ai_platform_engineering.storage.event_log.task_history import TaskHistory
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.a2a_common.codec.event_json import dumps
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES, WAITING_STATES
from ai_platform_engineering.utils.a2a_common.server.calls import call_context
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import Forget
from ai_platform_engineering.utils.a2a_common.server.page_tokens import page_token, read_page_token
from ai_platform_engineering.utils.a2a_common.server.request_body import PayloadTooLargeError, read_json
from ai_platform_engineering.utils.a2a_common.server.request_handler import LogRequestHandler
from ai_platform_engineering.utils.a2a_common.server.stored_conversations import (
    access_json,
    conversation_json,
    task_json,
)
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

PATH: Final = "/conversations"

Endpoint = Callable[[Request], Awaitable[Response]]

_PAGE: Final = 50
_MAX_LIMIT: Final = 200
_MAX_SEARCH_LENGTH: Final = 200
_MAX_NAME_LENGTH: Final = 200
_MAX_GROUPS: Final = 20
_MAX_BODY_SIZE: Final = 10_000
_FORCE_VALUES: Final = {"": False, "false": False, "true": True}


class InvalidRequestError(ReadableError):
    """A value in the request is wrong; the text names it."""


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


class NotOwnerError(ReadableError):
    def __init__(self) -> None:
        super().__init__("Only the owner of a conversation can share or delete it.")


_PROBLEMS: Final[Mapping[type[ReadableError], tuple[int, str]]] = {
    InvalidRequestError: (400, "invalid_request"),
    UnknownConversationError: (404, "not_found"),
    NotOwnerError: (403, "forbidden"),
    ConversationOpenError: (409, "conflict"),
    LogReadError: (503, "unavailable"),
    LogWriteError: (503, "unavailable"),
    LogClosedError: (503, "unavailable"),
}
"""The errors of the routes, each with its status and the value of `error`."""


class ConversationRoutes:
    """`forget` gives the function that deletes checkpoints; it is called while the app runs."""

    def __init__(
        self, handler: LogRequestHandler, forget: Callable[[], Forget], audit: AccessAudit | None = None
    ) -> None:
        self._handler = handler
        self._audit = audit or AccessAudit()
        self._forget = forget

    def routes(self) -> list[Route]:
        one = f"{PATH}/{{id}}"
        return [
            Route(PATH, _answer(self._list), methods=["GET"]),
            Route(one, _answer(self._get), methods=["GET"]),
            Route(one, _answer(self._change), methods=["PATCH"]),
            Route(one, _answer(self._delete), methods=["DELETE"]),
        ]

    async def _list(self, request: Request) -> Response:
        caller = caller_in(request.scope.get("state"))
        page = await self._handler.log.conversations(_query(request.query_params, caller))
        rows = [conversation_json(row, caller) for row in page.rows]
        return JSONResponse({"conversations": rows, "next": page_token(page.next) if page.next else None})

    async def _get(self, request: Request) -> Response:
        context_id, access = await self._found(request)
        histories = await self._handler.log.histories(context_id)
        if not histories:
            raise UnknownConversationError(context_id)
        name = await self._handler.log.name(context_id)
        facts = {"id": context_id, "name": name, **access_json(access, caller_in(request.scope.get("state")))}
        # In a thread, because decoding thousands of events would delay the streams of others.
        body = await asyncio.to_thread(_rendered, facts, histories)
        return Response(body, media_type="application/json")

    async def _change(self, request: Request) -> Response:
        context_id, access = await self._found(request)
        match await read_json(request, _MAX_BODY_SIZE):
            case {"name": None | str() as given}:
                changed: dict[str, Any] = {"name": _name(given)}
                found = await self._handler.log.rename(context_id, changed["name"])
            case {"groups": list(given)}:
                self._check_owner(request, context_id, access)
                changed = {"groups": sorted(_groups(given))}
                found = await self._handler.log.share(context_id, frozenset(changed["groups"]))
            case _:
                raise InvalidRequestError("name: must be a text, or null to remove the name; or send a list of groups.")
        if not found:
            raise UnknownConversationError(context_id)
        if "groups" in changed:
            target = ", ".join(changed["groups"])
            caller = caller_in(request.scope.get("state"))
            fact = AuditFact("conversation_shared", caller, conversation=context_id, target=target)
            self._audit.audit.record(fact)
        return JSONResponse({"id": context_id, **changed})

    async def _found(self, request: Request) -> tuple[str, ConversationAccess]:
        """The conversation of a request, if the caller may use it."""
        context_id: str = request.path_params["id"]
        access = await self._handler.log.access(context_id)
        if access is None:
            raise UnknownConversationError(context_id)
        caller = caller_in(request.scope.get("state"))
        if not access.allows(caller):
            self._audit.denied(caller, NOT_THEIR_CONVERSATION, conversation=context_id)
            raise UnknownConversationError(context_id)
        return context_id, access

    def _check_owner(self, request: Request, context_id: str, access: ConversationAccess) -> None:
        caller = caller_in(request.scope.get("state"))
        if not may_share(access, caller):
            self._audit.denied(caller, "only its owner may share or delete a conversation", conversation=context_id)
            raise NotOwnerError

    async def _delete(self, request: Request) -> Response:
        force = _FORCE_VALUES.get(request.query_params.get("force", ""))
        if force is None:
            raise InvalidRequestError("force: must be true or false.")
        context_id, access = await self._found(request)
        self._check_owner(request, context_id, access)
        count = await self._delete_conversation(request, context_id, force=force)
        logger.info("conversation %s was deleted, with %d tasks", context_id, count)
        caller = caller_in(request.scope.get("state"))
        self._audit.audit.record(AuditFact("data_deleted", caller, conversation=context_id, target="conversation"))
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


def _query(params: Mapping[str, str], viewer: Principal) -> ConversationQuery:
    search, limit, after = params.get("search", ""), params.get("limit", ""), params.get("after", "")
    if len(search) > _MAX_SEARCH_LENGTH:
        raise InvalidRequestError(f"search: must have at most {_MAX_SEARCH_LENGTH} characters.")
    if limit and not (limit.isdecimal() and len(limit) <= 3 and 1 <= int(limit) <= _MAX_LIMIT):
        raise InvalidRequestError(f"limit: must be a number from 1 to {_MAX_LIMIT}.")
    position = read_page_token(after) if after else None
    if after and position is None:
        raise InvalidRequestError("after: must be the value of `next` on the page before.")
    return ConversationQuery(search_words(search), position, int(limit or _PAGE), viewer)


def _name(given: str | None) -> str | None:
    """The name on one line; None removes the name."""
    name = one_line(given or "")
    if len(name) > _MAX_NAME_LENGTH:
        raise InvalidRequestError(f"name: must have at most {_MAX_NAME_LENGTH} characters.")
    return name or None


def _groups(given: Sequence[object]) -> frozenset[str]:
    groups = frozenset(group.strip() for group in given if isinstance(group, str) and group.strip())
    if len(groups) != len(given) or len(groups) > _MAX_GROUPS or any(len(group) > _MAX_NAME_LENGTH for group in groups):
        raise InvalidRequestError(
            f"groups: must be at most {_MAX_GROUPS} different names of groups, each of at most {_MAX_NAME_LENGTH} "
            "characters. An empty list ends the sharing."
        )
    return groups


def _rendered(facts: Mapping[str, Any], histories: Sequence[TaskHistory]) -> bytes:
    return dumps({**facts, "tasks": [task_json(history) for history in histories]})


def _answer(endpoint: Endpoint) -> Endpoint:
    """`endpoint` with its errors as responses."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            return Response(status_code=400)
        except PayloadTooLargeError:
            return _problem(413, "invalid_request", f"The body may have at most {_MAX_BODY_SIZE} bytes.")
        except A2AError as error:
            return _problem(400, "invalid_request", error.message)
        except tuple(_PROBLEMS) as error:
            code, name = next(problem for kind, problem in _PROBLEMS.items() if isinstance(error, kind))
            return _problem(code, name, str(error))

    return answer


def _problem(code: int, error: str, sentence: str) -> Response:
    return JSONResponse({"error": error, "message": sentence}, status_code=code)
