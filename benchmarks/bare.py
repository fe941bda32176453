"""The yardstick: `create_deep_agent` as it comes, without a server, streaming its answer. Prints JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from deepagents import create_deep_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.scenario import AGENT_PROMPT, QUESTION, VERSION, agent_model, supervisor_model


@tool
async def version_service__version() -> str:
    """The version of Argo CD."""
    return VERSION


async def main(requests: int) -> None:
    graph = create_deep_agent(
        supervisor_model(plan={"todos": [{"content": "Get the version", "status": "in_progress"}]}),
        system_prompt="You supervise agents.",
        subagents=[
            {
                "name": "argocd",
                "description": "Argo CD applications: status, sync, version.",
                "system_prompt": AGENT_PROMPT,
                "model": agent_model(),
                "tools": [version_service__version],
            }
        ],
        checkpointer=InMemorySaver(),
    )

    async def request(number: int) -> None:
        config = {"configurable": {"thread_id": str(number)}}
        async for _ in graph.astream(
            {"messages": [HumanMessage(QUESTION)]}, config, stream_mode=["messages", "updates"], subgraphs=True
        ):
            pass

    for number in range(5):
        await request(-1 - number)
    cpu, wall = time.process_time(), time.perf_counter()
    for number in range(requests):
        await request(number)
    print(
        json.dumps(
            {
                "cpu_ms": (time.process_time() - cpu) / requests * 1000,
                "wall_ms": (time.perf_counter() - wall) / requests * 1000,
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
