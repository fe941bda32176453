"""The route `GET /approvals/{task_id}/{form_id}`: the calls of an approval with all of their arguments, who asked, who
may decide, who decided, and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from a2a.types.a2a_pb2 import Artifact
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.events import Form
from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.codec.forms import read_form
from ai_platform_engineering.utils.a2a_common.codec.parts import data_of
from ai_platform_engineering.utils.a2a_common.server.approvals import read_record
from ai_platform_engineering.utils.a2a_common.wire import FORM_ARTIFACT

PATH: Final = "/approvals"


def approval_route(log: EventLog) -> Route:
    async def get(request: Request) -> Response:
        task_id, form_id = request.path_params["task_id"], request.path_params["form_id"]
        task = await log.task(task_id)
        access = await log.access(task.context_id) if task is not None else None
        is_allowed = access is None or access.allows(caller_in(request.scope.get("state")))
        record = await read_record(log, task_id, form_id) if is_allowed else None
        if task is None or record is None:
            sentence = f"Task {task_id!r} has no approval {form_id!r}."
            return JSONResponse({"error": "not_found", "message": sentence}, status_code=404)
        form = _form(task.artifacts, form_id)
        calls = [dict(call) for call in form.action_requests] if form is not None else []
        return JSONResponse({"task_id": task_id, "form_id": form_id, **record.facts(), "action_requests": calls})

    return Route(f"{PATH}/{{task_id}}/{{form_id}}", get, methods=["GET"])


def _form(artifacts: Iterable[Artifact], form_id: str) -> Form | None:
    """The form as it was shown last."""
    forms = [read_form(data_of(artifact.parts)) for artifact in artifacts if artifact.name == FORM_ARTIFACT]
    return next((form for form in reversed(forms) if form.form_id == form_id), None)
