"""The tool with which a model asks a person, in a graph: the form, and what the model reads of the answer."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from ai_platform_engineering.graphs.agent_graph import agent_graph
from ai_platform_engineering.graphs.ask_tool import ask_tool
from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from tests.runs.graphs import context, settings_of

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ({"values": {"name": "größe", "count": 3}}, '{"name": "größe", "count": 3}'),
        ({"cancel": True, "message": "not now"}, "The person canceled the form: not now"),
        ({"cancel": True}, "The person canceled the form."),
        ({"decisions": [{"type": "approve"}]}, "The person canceled the form."),
        ({}, "The person canceled the form."),
    ],
    ids=["filled in", "canceled with a reason", "canceled", "an approval", "nothing"],
)
async def test_the_model_reads_what_the_person_said_to_the_form(said: dict[str, Any], read: str) -> None:
    form = {"title": "Which?", "fields": [{"name": "name", "description": "Its name."}]}
    turns = [Turn("", [("request_user_input", form)]), Turn("Done.")]
    graph = agent_graph(
        settings_of(), ScriptedChatModel(script=turns), [], "You ask.", name="jira", checkpointer=InMemorySaver()
    )
    await graph.ainvoke({"messages": [HumanMessage("q")]}, CONFIG, context=context())
    [waiting] = (await graph.aget_state(CONFIG)).interrupts
    assert (waiting.value["input_title"], waiting.value["agent"]) == ("Which?", "jira")
    resume: Command[Any] = Command(resume={waiting.id: said})
    state = await graph.ainvoke(resume, CONFIG, context=context(resumed=True))
    _, _, result, answer = state["messages"]
    assert (result.name, result.text, result.status) == ("request_user_input", read, "success")
    assert answer.text == "Done."


def test_the_model_reads_what_the_tool_is_for() -> None:
    described = ask_tool("jira").description
    assert described.startswith("Ask the person for values you need and cannot find out yourself.")
