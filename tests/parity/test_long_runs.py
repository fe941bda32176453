"""An agent stays inside its model's context window in both placements."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.events import Event, FinalResult, ToolFinished
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.graphs.test_context_limit import call, tokens, too_long
from tests.invariants import check_task
from tests.llm.openai_server import OpenAIServer, openai_server
from tests.normalised import normalised
from tests.people.dialogues import Dialogue
from tests.servers import CommandLine, calling, serving

STEPS = 22
WINDOW = 8_000


def is_supervisor(body: Mapping[str, Any]) -> bool:
    return "task" in {tool["function"]["name"] for tool in body["tools"]}


def part(body: dict[str, Any]) -> Sequence[dict[str, Any]]:
    results = sum(message["role"] == "tool" for message in body["messages"])
    if is_supervisor(body):
        return [{"content": "Done."}] if results else [call("task", description="watch", subagent_type="argocd")]
    return [call("list_applications")] if results < STEPS else [{"content": "Watched."}]


async def events_of(folder: Path, model: OpenAIServer, *, remote: bool) -> Sequence[Event]:
    environ = {"PATH": os.environ["PATH"], "DATA_DIR": str(folder), "SANDBOX": "true", "ENABLE_RAG": "false"}
    environ |= {"OPENAI_ENDPOINT": model.address, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL_NAME": "m"}
    environ |= {"ARGOCD_LLM_CONTEXT_TOKENS": str(WINDOW)}
    async with AsyncExitStack() as stack:
        if remote:
            agent = await stack.enter_async_context(CommandLine(["agent", "argocd", "--port", "0"], environ))
            environ |= {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent.url}
        url = await stack.enter_async_context(serving(create_app, environ))
        talk = Dialogue(await stack.enter_async_context(calling(url)), "c")
        assert not await talk.ask("watch argocd")
        return talk.events


@pytest.mark.timeout(180)
async def test_the_agent_shortens_its_results_wherever_it_runs(tmp_path: Path) -> None:
    runs = []
    for remote in (False, True):
        (folder := tmp_path / str(remote)).mkdir()
        with openai_server() as model:
            model.part = part
            model.rules = lambda body: None if is_supervisor(body) else too_long(body, WINDOW)
            runs.append(await events_of(folder, model, remote=remote))
            prompts = [tokens(body) for body in model.requests if not is_supervisor(body)]
        assert len(prompts) == STEPS + 1, "no prompt was refused"
        assert any(later < earlier for earlier, later in pairwise(prompts)), "results were shortened"
    inside, outside = runs
    assert isinstance(check_task(inside), FinalResult)
    assert sum(isinstance(event, ToolFinished) for event in inside) == STEPS
    assert normalised(inside) == normalised(outside)
