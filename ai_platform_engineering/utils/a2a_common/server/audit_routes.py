"""The route `/audit`: admins read the audit record of the server, the newest entries first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import dropwhile, islice
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.audit.access import AccessAudit
from ai_platform_engineering.audit.log import AuditUnavailableError
from ai_platform_engineering.identity.access import sees_everything
from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.storage.audit.stores import AuditRecord

_LIMIT: Final = 100


def audit_route(record: Callable[[], AuditRecord], access: AccessAudit) -> Route:
    """`GET /audit?before=SEQ`: the entries before that one, at most 100."""

    async def list_entries(request: Request) -> Response:
        caller = caller_in(request.scope.get("state"))
        if not sees_everything(caller):
            access.denied(caller, "only admins may read the audit record")
            return problem(403, "forbidden", "Only admins may read the audit record.")
        before = request.query_params.get("before", "")
        if before and not (before.isdecimal() and len(before) <= 18):
            return problem(400, "invalid_request", "before: must be the number of an entry.")
        try:
            return JSONResponse({"entries": await asyncio.to_thread(_entries, record(), int(before or 0))})
        except AuditUnavailableError as error:
            return problem(503, "unavailable", str(error))

    return Route("/audit", list_entries, methods=["GET"])


def _entries(record: AuditRecord, before: int) -> list[dict[str, Any]]:
    try:
        with record.open_lines(newest_first=True) as lines:
            entries = map(json.loads, lines)
            return [*islice(dropwhile(lambda entry: before and entry["seq"] >= before, entries), _LIMIT)]
    finally:
        record.close()


def problem(code: int, error: str, sentence: str) -> Response:
    return JSONResponse({"error": error, "message": sentence}, status_code=code)
