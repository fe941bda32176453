"""The offline model with memories, over A2A."""

from __future__ import annotations

import signal
from pathlib import Path

from ai_platform_engineering.events import FinalResult, ToolStarted
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.invariants import check
from tests.servers import Caller, CommandLine, calling, serving

ENVIRON = {"SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "ENABLE_RAG": "false", "LANGGRAPH_STORE_TYPE": "sqlite"}


async def ask(caller: Caller, question: str, conversation: str = "") -> tuple[list[str], str]:
    """The supervisor's tools that were called, and the answer."""
    events = await caller.ask(question, context_id=conversation, metadata={"user": "jane"})
    check(events)
    assert isinstance(events[-1], FinalResult)
    tools = [event.tool for event in events if isinstance(event, ToolStarted) and event.agent == "supervisor"]
    return tools, events[-1].text


async def test_the_offline_model_remembers_lists_and_forgets(tmp_path: Path) -> None:
    async with serving(create_app, {**ENVIRON, "DATA_DIR": str(tmp_path)}) as url, calling(url) as caller:
        tools, answer = await ask(caller, "Please remember that I deploy to eu-west-1: always.", "1")
        assert tools == ["remember"]
        assert "I will remember: I deploy to eu-west-1: always." in answer
        await ask(caller, "remember: my cluster is blue", "2")
        tools, answer = await ask(caller, "What do you remember about me?", "3")
        assert tools == ["list_memories"]
        assert "- my cluster is blue\n- I deploy to eu-west-1: always." in answer

        # Other requests are served as without memories.
        tools, answer = await ask(caller, "show argocd version", "4")
        assert tools == []
        assert "remember" not in answer
        assert (await ask(caller, "do you remember the incidents of last week?", "5"))[0] == []

        tools, answer = await ask(caller, "forget about the moon", "6")
        assert (tools, "nothing to forget" in answer) == ([], True)
        tools, answer = await ask(caller, "forget that I deploy to eu-west-1", "6")
        assert tools == ["forget_memory"]
        assert "I have forgotten: I deploy to eu-west-1: always." in answer
        assert (await ask(caller, "forget everything", "7"))[0] == ["forget_memory"]
        assert "I remember nothing" in (await ask(caller, "what do you remember?", "8"))[1]


async def test_a_memory_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    environ = {**ENVIRON, "DATA_DIR": str(tmp_path)}
    async with CommandLine(["--port", "0"], environ) as supervisor:
        async with calling(supervisor.url) as caller:
            await ask(caller, "remember that I deploy to eu-west-1", "1")
        await supervisor.stop(signal.SIGKILL)
    async with CommandLine(["--port", "0"], environ) as supervisor, calling(supervisor.url) as caller:
        assert "- I deploy to eu-west-1" in (await ask(caller, "what do you remember about me?", "2"))[1]
        assert await supervisor.stop() == 0
