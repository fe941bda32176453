"""How many bytes the models are sent for a question that one agent answers, all their calls together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends.filesystem import FilesystemBackend
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.skills_middleware.sources.directory import library_directory
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from benchmarks.effort import Effort
from benchmarks.rows import Row
from benchmarks.scenario import QUESTION, agent_part, supervisor_part


def prompts(_effort: Effort) -> list[Row]:
    """Without skills, and with the built-in ones, which the plain graph then has through deepagents' own middleware."""
    rows: list[Row] = []
    for key, skills in (("prompt", False), ("prompt.skills", True)):
        with TemporaryDirectory() as folder:
            ours, bare, agents = asyncio.run(_measured(folder, skills=skills))
        title = "Prompt of a question with the built-in skills" if skills else "Prompt of a question"
        rows += [
            Row(f"{key}.bare", f"{title}: plain graph, the same {agents} agents and tools", bare / 1000, "KB", 1.0),
            Row(key, f"{title}: product, {agents} sandbox agents", ours / 1000, "KB", ours / bare),
        ]
    return rows


def prompt_bytes(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]) -> int:
    """The size of one call as JSON, as a provider gets it."""
    prompt = {"messages": convert_to_openai_messages(messages), "tools": list(tools)}
    return len(json.dumps(prompt, ensure_ascii=False, separators=(",", ":")).encode())


class MeteredChatModel(ScriptedChatModel):
    """Plays its part, and reports the size of everything it is sent."""

    report: Callable[[int], None]

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(schemas=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        schemas: Sequence[dict[str, Any]] = (),
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.report(prompt_bytes(messages, schemas))
        async for chunk in super()._astream(messages, stop, run_manager):
            yield chunk


async def _measured(folder: str, *, skills: bool) -> tuple[int, int, int]:
    """Bytes of the product, bytes of the bare graph, and how many agents both have."""
    sizes: list[int] = []

    def metered(part: Sequence[Turn]) -> MeteredChatModel:
        return MeteredChatModel(script=part, report=sizes.append)

    settings = load_settings(
        {"DATA_DIR": folder, "SANDBOX": "true", "ENABLE_SKILLS": str(skills).lower()}, env_file=None
    )
    product = PlatformEngineerDeepAgent(
        settings, models=lambda _, manifest: metered(agent_part() if manifest else supervisor_part())
    )
    await product.start()
    question = {"messages": [HumanMessage(QUESTION)]}
    try:
        config = {"configurable": {"thread_id": "product"}}
        await _run(product.graph, question, config, context=RequestContext("c", "t", "trace", None, None, False))
        ours = sum(sizes)
        sizes.clear()
        entries = product.registry.local()
        bare = create_deep_agent(
            metered(supervisor_part(bare=True)),
            system_prompt="You supervise agents.",
            subagents=[
                {
                    "name": entry.name,
                    "description": entry.manifest.description,
                    "system_prompt": entry.manifest.prompt,
                    "model": metered(agent_part()),
                    "tools": product.mcp.tools(entry.name),
                }
                for entry in entries
                if entry.manifest is not None
            ],
            skills=["/"] if skills else None,
            backend=FilesystemBackend(root_dir=library_directory(), virtual_mode=True) if skills else None,
        )
        await _run(bare, question)
        return ours, sum(sizes), len(entries)
    finally:
        await product.aclose()


async def _run(graph: Any, *arguments: Any, **options: Any) -> None:
    """Runs the graph so that its models stream, as they do when people watch."""
    async for _ in graph.astream(*arguments, stream_mode="messages", subgraphs=True, **options):
        pass
