"""What an agent hands back to the supervisor, in either placement: its answer, with a note if it was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig

from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.limits import CUT_SENTENCES, CutReason
from ai_platform_engineering.llm.finish_reasons import cut_reason


def handed_back(answer: str, cut: CutReason | None) -> str:
    """The answer for the supervisor's model."""
    return answer if cut is None else f"{answer}\n\n[This answer is incomplete. {CUT_SENTENCES[cut]}]"


class LocalAgent(Runnable[Any, Any]):
    """An in-process agent among the sub-agents. Has only what the delegating tool needs of a runnable."""

    def __init__(self, graph: Graph) -> None:
        self.name = graph.name
        self._graph = graph

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        result: Mapping[str, Any] = await self._graph.ainvoke(input, config)
        messages = result["messages"]
        last = messages[-1] if messages else None
        if not isinstance(last, AIMessage) or (cut := cut_reason(last)) is None:
            return result
        return {**result, "messages": [*messages[:-1], AIMessage(handed_back(str(last.text), cut), id=last.id)]}

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> NoReturn:  # noqa: A002
        raise NotImplementedError(f"The {self.name} agent can only be awaited: call ainvoke.")
