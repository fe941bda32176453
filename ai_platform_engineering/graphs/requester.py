"""On whose behalf the tool that runs now is called."""

from __future__ import annotations

from langgraph.runtime import get_runtime

from ai_platform_engineering.mcp.on_behalf_of import Requester
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


def current_requester() -> Requester:
    """The caller of the request of this run; anonymous outside of a run, for example in a check of the backend."""
    try:
        context: RequestContext | None = get_runtime(RequestContext).context
    except (RuntimeError, KeyError):
        return Requester()
    if context is None:
        return Requester()
    # With any other way of verification, the bearer value is a key, or the token of the bot that made a statement.
    is_users = context.caller.verified_by == "token"
    return Requester(context.caller, context.auth_token if is_users else None)
