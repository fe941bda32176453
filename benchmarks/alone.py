"""What can be called without a server, as a process to be measured: `python -m benchmarks.alone bare|graph|tool`.

It says that it is ready, then answers every line of JSON on its standard input (how many requests, how many at once,
in which conversation) with one that says how each of them went. Requests in the background are begun and not waited
for.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from benchmarks.samples import Answered
from benchmarks.scenario import QUESTION, TOOL, agent_model, manifests, supervisor_model, version_service__version

Request = Callable[[str], Awaitable[Answered]]
"""One request in the conversation with that name."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["bare", "graph", "tool"])
    parser.add_argument("--agents", type=int, default=1)
    parser.add_argument("--provider", help="the address of a model provider, in place of the model in this process")
    parser.add_argument("--server", type=json.loads, help="the MCP server of the tool, as in a manifest")
    options = parser.parse_args()
    match options.what:
        case "bare":
            subject = _bare(options.agents, options.provider)
        case "graph":
            subject = _product()
        case _:
            subject = _tool(options.server)
    asyncio.run(obey(subject))


async def obey(subject: AbstractAsyncContextManager[Request]) -> None:
    numbers = itertools.count(1)
    background = []
    async with subject as request:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            command = json.loads(line)
            names = iter([command["context"] or f"c{next(numbers)}" for _ in range(command["requests"])])
            working = asyncio.gather(*(_work(request, names) for _ in range(command["streams"])))
            if command.get("background"):
                background.append(working)
                print("[]", flush=True)
                continue
            print(json.dumps([asdict(answer) for part in await working for answer in part]), flush=True)


async def _work(request: Request, contexts: Iterator[str]) -> list[Answered]:
    return [await request(context) for context in contexts]


@asynccontextmanager
async def _bare(agents: int, provider: str | None) -> AsyncIterator[Request]:
    """The yardstick: `create_deep_agent` as it comes, streaming its answer."""
    from deepagents import create_deep_agent

    graph = create_deep_agent(
        _chat_openai(provider) if provider else supervisor_model(bare=True),
        system_prompt="You supervise agents.",
        subagents=[
            {
                "name": manifest.name,
                "description": manifest.description,
                "system_prompt": manifest.prompt,
                "model": _chat_openai(provider) if provider else agent_model(),
                "tools": [version_service__version],
            }
            for manifest in manifests(agents)
        ],
        checkpointer=InMemorySaver(),
    )
    yield lambda context: _asked(graph, context, stream_mode=["messages", "updates"])


def _chat_openai(address: str) -> BaseChatModel:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(base_url=f"{address}/v1", api_key=SecretStr("not-a-key"), model="scripted")


@asynccontextmanager
async def _product() -> AsyncIterator[Request]:
    """The product's graph with the agents of the environment, without translation, log and server."""
    from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
    from ai_platform_engineering.runs.translation import STREAM_MODES
    from ai_platform_engineering.settings import load_settings
    from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

    supervisor = PlatformEngineerDeepAgent(
        load_settings(env_file=None),
        models=lambda _, manifest: agent_model() if manifest else supervisor_model(),
    )
    await supervisor.start(InMemorySaver())
    request = RequestContext("context", "task", "trace", None, None, False)
    try:
        yield lambda context: _asked(supervisor.graph, context, stream_mode=STREAM_MODES, context=request)
    finally:
        await supervisor.aclose()


async def _asked(graph: Any, thread: str, **streaming: Any) -> Answered:
    """The answer begins with the first words of the graph's own that come after an agent's."""
    began = time.perf_counter()
    first = answer = 0.0
    parts = 0
    agent_done = False
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    question = {"messages": [HumanMessage(QUESTION)]}
    async for part in graph.astream(question, config, subgraphs=True, version="v2", **streaming):
        parts += 1
        first = first or time.perf_counter()
        agent_done = agent_done or bool(part["ns"])
        if not answer and agent_done and not part["ns"] and part["type"] == "messages":
            message = part["data"][0]
            if isinstance(message, AIMessageChunk) and message.content:
                answer = time.perf_counter()
    return Answered(first - began, answer - began, time.perf_counter() - began, parts)


@asynccontextmanager
async def _tool(server: dict[str, Any]) -> AsyncIterator[Request]:
    from ai_platform_engineering.manifest import McpServer
    from ai_platform_engineering.mcp import McpServers
    from ai_platform_engineering.settings import load_settings

    servers = McpServers(load_settings(env_file=None))
    await servers.start({"argocd": [McpServer.model_validate(server)]}, deadline=30)
    tool = next(tool for tool in servers.tools("argocd") if tool.name == TOOL)

    async def call(_context: str) -> Answered:
        began = time.perf_counter()
        await tool.ainvoke({})
        seconds = time.perf_counter() - began
        return Answered(seconds, seconds, seconds, 1)

    try:
        yield call
    finally:
        await servers.aclose()


if __name__ == "__main__":
    main()
