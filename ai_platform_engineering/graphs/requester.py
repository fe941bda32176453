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
    return Requester() if context is None else Requester(context.caller, context.callers_token)
