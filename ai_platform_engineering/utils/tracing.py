"""Tracing costs nothing where nobody traces."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

import langsmith
from langsmith.utils import tracing_is_enabled


def trace_inline() -> None:
    """For the process, at its start: LangChain's tracing goes to a thread twice around every hook of a graph, also when
    nothing is traced. That is some twenty hops a request; this leaves them out until tracing is switched on."""
    langsmith.set_runtime_overrides(aio_to_thread=_inline)


async def _inline(
    in_thread: Callable[..., Awaitable[Any]],
    context: contextvars.Context,
    function: Callable[..., Any],
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    if tracing_is_enabled():
        return await in_thread(context, function, *args, **kwargs)
    return context.run(function, *args, **kwargs)
