"""From a call to its answer: who calls, how often, with what; then the method itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import ceil
from typing import Any

from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.conversations import check_scope
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.web_api.methods import METHODS, Method

JSON_ARGUMENTS = (
    "attachments",
    "blocks",
    "chunks",
    "files",
    "loading_messages",
    "metadata",
    "prompts",
    "view",
)


class TooManyCallsError(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = max(1, ceil(seconds))


def perform(state: State, call: ApiCall) -> dict[str, Any]:
    """Do it, or raise `RefusedError` or `TooManyCallsError`. What no workspace would take is noted as a violation."""
    try:
        method = METHODS.get(call.method)
        if method is None:
            raise RefusedError("unknown_method", req_method=call.method)
        _check_token(state, call, method)
        _check_rate(state, call, method)
        if method.scope:
            check_scope(state, method.scope)
        _check_arguments(state, call, method)
        return {"ok": True, **method.does(state, call)}
    except RefusedError as refused:
        if refused.fault:
            state.violate("refused", call.method, str(refused))
        raise


def decoded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a form, in which what has a structure is JSON."""
    result = dict(arguments)
    for name in JSON_ARGUMENTS:
        if isinstance(result.get(name), str):
            try:
                result[name] = json.loads(result[name])
            except ValueError:
                # Left as it is, it is refused as what it is.
                continue
    return result


def _check_token(state: State, call: ApiCall, method: Method) -> None:
    app = state.directory.app
    if not call.token:
        raise RefusedError("not_authed")
    if call.token not in (app.bot_token, app.app_token):
        raise RefusedError("invalid_auth")
    if call.token != (app.bot_token if method.token == "bot" else app.app_token):
        raise RefusedError("not_allowed_token_type")
    if method.token == "app" and "connections:write" not in app.app_scopes:
        raise RefusedError("missing_scope", needed="connections:write", provided=",".join(app.app_scopes))


def _check_rate(state: State, call: ApiCall, method: Method) -> None:
    if left := state.rates.held(call.method, state.now):
        if state.rates.is_known(call.method, state.now):
            state.violate("too_early", call.method, f"{left:.1f} s before it might be called again")
        raise TooManyCallsError(left)
    wait = state.rates.wait(call.method, method.per_minute, call.get("channel"), state.now)
    if wait:
        state.violate("rate_limit", call.method, f"the next was possible in {wait:.1f} s")
        state.rates.hold(call.method, ceil(wait), state.now)
        raise TooManyCallsError(wait)


def _check_arguments(state: State, call: ApiCall, method: Method) -> None:
    # Bolt tells every method which workspace it is about.
    given = set(call.arguments) - {"team_id"}
    for name in sorted(given - method.required - method.optional):
        state.violate("unknown_argument", call.method, name)
        raise RefusedError("invalid_arguments", f"unknown argument: {name}", fault=False)
    # An empty status takes the status away.
    missing = {name for name in method.required if name not in given or call.arguments[name] in (None, "", [])}
    if missing - {"status"} or "status" in method.required - given:
        raise RefusedError("invalid_arguments", f"missing required field: {min(missing)}")
