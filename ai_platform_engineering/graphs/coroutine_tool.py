"""A tool that is a coroutine.

LangChain evaluates the annotations of `_arun` in each call, so they are types here, not strings.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Self

from langchain_core.tools import StructuredTool


class CoroutineTool(StructuredTool):
    """A tool whose coroutine gets its arguments, and the `ToolRuntime` that LangGraph injects.

    A `StructuredTool` also searches its coroutine for parameters for callbacks and the config, in each call.
    """

    coroutine: Callable[..., Awaitable[Any]]

    @classmethod
    def of(cls, tool: StructuredTool) -> Self:
        return cls(**dict(tool))

    async def _arun(self, /, *args: Any, **kwargs: Any) -> Any:
        return await self.coroutine(*args, **kwargs)
