"""What is stored of a run, and what is not, because it can be restored otherwise."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from ai_platform_engineering.graphs.interrupted_run import complete_conversation
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.runs.outcomes import InterruptedRun
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.data_files import conversations_file
from ai_platform_engineering.utils.checkpointer import checkpointer_for

QUESTION = {"messages": [HumanMessage("go")]}
CONFIG: Any = {"configurable": {"thread_id": "talk"}}


@pytest.mark.parametrize("calls", [1, 2])
async def test_the_result_of_each_call_is_stored_with_the_task_that_made_it(calls: int, tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    numbers: list[int] = []

    @tool
    async def count(number: int) -> str:
        """Counts."""
        numbers.append(number)
        return "counted"

    script = [Turn("", [("count", {"number": number}) for number in range(calls)]), Turn("Done.")]
    async with checkpointer_for(settings) as saver:
        graph: Any = create_agent(ScriptedChatModel(script=script), [count], checkpointer=saver)
        await graph.ainvoke(QUESTION, CONFIG, durability="sync")
    assert sorted(numbers) == [*range(calls)]
    with closing(sqlite3.connect(conversations_file(settings))) as file:
        (tasks,) = file.execute("SELECT count(DISTINCT task_id) FROM writes").fetchone()
    # A run that is continued reads from them which of its calls have finished.
    assert tasks == calls


async def test_a_finished_call_is_not_repeated_because_another_one_of_its_step_was_interrupted(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    called: list[str] = []

    @tool
    async def quick() -> str:
        """Ends at once."""
        called.append("quick")
        return "done"

    @tool
    async def killed() -> str:
        """Ends with its process the first time."""
        called.append("killed")
        if called.count("killed") > 1:
            return "done"
        async with checkpointer_for(settings) as reader:
            assert reader is not None
            while not (stored := await reader.aget_tuple(CONFIG)) or not stored.pending_writes:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        raise SystemError

    script = [Turn("", [("quick", {}), ("killed", {})]), Turn("Done.")]
    async with checkpointer_for(settings) as saver:
        graph: Any = create_agent(ScriptedChatModel(script=script), [quick, killed], checkpointer=saver)
        with pytest.raises(SystemError):
            await graph.ainvoke(QUESTION, CONFIG, durability="sync")
    async with checkpointer_for(settings) as saver:
        graph = create_agent(ScriptedChatModel(script=script), [quick, killed], checkpointer=saver)
        found = await graph.ainvoke(None, CONFIG, durability="sync")
    assert (sorted(called), found["messages"][-1].content) == (["killed", "killed", "quick"], "Done.")


@pytest.mark.parametrize("is_continued", [True, False])
async def test_a_killed_run_needs_no_checkpoint_that_can_be_restored(is_continued: bool, tmp_path: Path) -> None:
    """Its conversation is complete, whether the run is continued or ended."""
    settings, left = load_settings({"DATA_DIR": str(tmp_path / "data")}, None), tmp_path / "left"
    called: list[str] = []

    @tool
    async def look() -> str:
        """Looks."""
        called.append("look")
        return "seen"

    def script(asked: ModelInput) -> Turn:
        if asked.turn == 1 and not left.exists():
            shutil.copytree(tmp_path / "data", left)  # as a process leaves it that is killed now
        return Turn("", [("look", {})]) if asked.turn == 0 else Turn("Done.")

    async with checkpointer_for(settings) as saver:
        graph: Any = create_agent(ScriptedChatModel(script=script), [look], checkpointer=saver)
        await graph.ainvoke(QUESTION, CONFIG, durability="sync")
    async with checkpointer_for(load_settings({"DATA_DIR": str(left)}, None)) as saver:
        assert saver is not None
        stored = [found async for found in saver.alist(CONFIG)]
        # Neither the question, which is sent again, nor the state after the call, whose result is stored.
        assert [found.metadata["step"] for found in stored] == [1]
        graph = create_agent(ScriptedChatModel(script=script), [look], checkpointer=saver)
        if is_continued:
            await graph.ainvoke(None, CONFIG, durability="sync")
        else:
            await complete_conversation(graph, InterruptedRun("talk", "task"))
            await graph.ainvoke({"messages": [HumanMessage("again")]}, CONFIG, durability="sync")
        messages = (await graph.aget_state(CONFIG)).values["messages"]
    assert [message.content for message in messages[:4]] == ["go", "", "seen", "Done." if is_continued else "again"]
    assert called.count("look") == (1 if is_continued else 2), "the next question looks again, the run does not"


async def test_a_deferred_checkpoint_is_stored_when_the_run_fails(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)

    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    def script(asked: ModelInput) -> Turn:
        if asked.turn == 1:
            raise SystemError
        return Turn("", [("look", {})])

    async with checkpointer_for(settings) as saver:
        graph: Any = create_agent(ScriptedChatModel(script=script), [look], checkpointer=saver)
        with pytest.raises(SystemError):
            await graph.ainvoke(QUESTION, CONFIG, durability="sync")
    async with checkpointer_for(settings) as saver:
        assert saver is not None
        stored = await saver.aget_tuple(CONFIG)
    assert stored is not None
    messages = stored.checkpoint["channel_values"]["messages"]
    assert [message.content for message in messages] == ["go", "", "seen"]
