"""The route `/usage`: callers read their own usage and limits; admins read those of anybody."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.budgets.report import principal_of, scopes_named, usage_facts
from ai_platform_engineering.budgets.usage import GROUP, day_of, days_before
from ai_platform_engineering.identity.access import sees_everything
from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.storage.usage.store import UsageStoreError
from ai_platform_engineering.utils.a2a_common.server.audit_routes import problem
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import UsageLedger

MAX_DAYS: Final = 366


def usage_route(ledger: UsageLedger) -> Route:
    """`GET /usage?days=N`: of the caller. `?subject=SUB` or `?all=true`: of another one or of all, for admins."""

    async def read(request: Request) -> Response:
        caller = caller_in(request.scope.get("state"))
        query = request.query_params
        days, subject = query.get("days", "1"), query.get("subject")
        if not (days.isascii() and days.isdecimal() and len(days) < 4 and 0 < int(days) <= MAX_DAYS):
            return problem(400, "invalid_request", f"days: must be a whole number from 1 to {MAX_DAYS}.")
        is_all = query.get("all", "false").lower() == "true"
        if (is_all or subject is not None) and not sees_everything(caller):
            return problem(403, "forbidden", "Only admins may read the usage of others.")
        try:
            await ledger.flush()
            if is_all:
                return JSONResponse(await _of_all(ledger, int(days)))
            return JSONResponse(await _of_one(ledger, caller, subject, int(days)))
        except UsageStoreError as error:
            return problem(503, "unavailable", str(error))

    return Route("/usage", read, methods=["GET"])


async def _of_all(ledger: UsageLedger, days: int) -> dict[str, Any]:
    today = day_of()
    rows = await asyncio.to_thread(ledger.store.rows, days_before(today, days - 1))
    return usage_facts(rows, today, ledger.budgets.currency)


async def _of_one(ledger: UsageLedger, caller: Principal, subject: str | None, days: int) -> dict[str, Any]:
    today = day_of()
    scopes = (caller.owner,) if subject is None else scopes_named(subject)
    rows = await asyncio.to_thread(ledger.store.rows, days_before(today, days - 1), scopes)
    person = caller
    if subject is not None:
        found = next((row.scope for row in rows if not row.scope.startswith(GROUP)), subject)
        person = principal_of(found)
    account = ledger.account(person)
    limits = await ledger.balances(account) if account.limits else []
    facts = usage_facts(rows, today, ledger.budgets.currency, limits, ledger.warning(account))
    return {"subject": person.owner if subject is None else subject, **facts}
