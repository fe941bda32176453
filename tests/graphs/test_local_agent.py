"""The graph of an agent in this process: its tools, its middlewares, and what the supervisor gets from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime

from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.graphs.agent_models import ModelFactory, UnstreamedTurns, model_for
from ai_platform_engineering.graphs.local_agent import LocalAgent, agent_prompt, local_agent_graph
from ai_platform_engineering.graphs.work_failures import NotDoneError, UnfinishedWorkError
from ai_platform_engineering.llm import chat_model
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.runs.answers import with_cut_note
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.utils.errors import ReadableError
from tests.runs.graphs import agent, context, settings_of

DEPOT = {
    "name": "depot",
    "title": "The Depot",
    "description": "Parcels.",
    "prompt": "You run the depot.\n",
    "servers": [{"name": "depot", "transport": "memory", "module": "tests.graphs.depot:server"}],
    "skills": ["parcel-return"],
}
MANIFEST = AgentManifest.model_validate(DEPOT)
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def playing(*turns: Turn, cues: list[ModelInput] | None = None) -> ModelFactory:
    def part(cue: ModelInput) -> Turn:
        if cues is not None:
            cues.append(cue)
        return turns[cue.turn] if cue.turn < len(turns) else Turn("Done.")

    return lambda _settings, _manifest: ScriptedChatModel(script=part)


@asynccontextmanager
async def depot(
    tmp_path: Path,
    models: ModelFactory,
    *,
    manifest: AgentManifest = MANIFEST,
    started: bool = True,
    sandboxed: bool = False,
    commands: bool = False,
    **environ: str,
) -> AsyncIterator[Graph]:
    skills = tmp_path / "skills" / "parcel-return"
    skills.mkdir(parents=True)
    (skills / "SKILL.md").write_text("---\nname: parcel-return\ndescription: Returns.\n---\nReturn $ARGUMENTS.\n")
    settings = settings_of(DATA_DIR=str(tmp_path), SKILLS_DIR=str(skills.parent), **environ)
    mcp, catalog = McpServers(settings), SkillCatalog(settings)
    await catalog.start()
    try:
        if started:
            await mcp.start({"depot": manifest.servers}, deadline=60)
        yield local_agent_graph(
            settings,
            manifest,
            mcp,
            models,
            InMemorySaver(),
            sandboxed=sandboxed,
            catalog=catalog,
            commands=commands,
        )
    finally:
        await mcp.aclose()
        await catalog.aclose()


async def ask(graph: Graph, question: str = "q", **options: Any) -> list[AnyMessage]:
    state = await graph.ainvoke({"messages": [HumanMessage(question)]}, CONFIG, context=context(**options))
    messages: list[AnyMessage] = state["messages"]
    return messages


DELETE = Turn("", [("delete_parcel", {"name": "box"})])
BROKEN = Turn("", [("find_parcel", {"name": "broken"})])
FIND = Turn("", [("find_parcel", {"name": "box"})])


async def test_it_has_its_tools_its_prompt_and_its_skills(tmp_path: Path) -> None:
    cues: list[ModelInput] = []
    async with depot(tmp_path, playing(FIND, cues=cues)) as graph:
        result = (await ask(graph))[2]
        assert graph.name == "depot"
        assert result.text == "box is here."
    assert set(cues[0].tools) == {"find_parcel", "delete_parcel", "request_user_input", "read_skill"}
    prompt = str(cues[0].messages[0].text)
    assert prompt.startswith("You run the depot.\n\nSkills are instructions")
    assert "- parcel-return: Returns." in prompt


async def test_it_reads_a_skill_by_name_only_where_people_talk_to_it(tmp_path: Path) -> None:
    for number, commands in enumerate((True, False)):
        async with depot(tmp_path / str(number), playing(), commands=commands) as graph:
            messages = await ask(graph, "/parcel-return box")
            assert any(isinstance(message, ToolMessage) for message in messages) == commands


async def test_a_destructive_call_waits_under_the_title_of_the_agent(tmp_path: Path) -> None:
    async with depot(tmp_path, playing(DELETE)) as graph:
        await ask(graph)
        [waiting] = (await graph.aget_state(CONFIG)).interrupts
        assert waiting.value["input_description"].startswith("The Depot wants to call delete_parcel")
        assert waiting.value["action_requests"][0]["agent"] == "depot"


async def test_a_manifest_denies_calls_of_its_servers_and_not_of_the_sandbox(tmp_path: Path) -> None:
    [server] = DEPOT["servers"]
    denied = {**DEPOT, "servers": [{**server, "deny": {"find_parcel": {"name": "box"}}}]}  # type: ignore[dict-item]
    manifest = AgentManifest.model_validate(denied)
    for sandboxed, status in ((False, "error"), (True, "success")):
        models = playing(FIND, Turn("", [("find_parcel", {"name": "crate"})]))
        async with depot(tmp_path / status, models, manifest=manifest, sandboxed=sandboxed) as graph:
            results = [message for message in await ask(graph) if isinstance(message, ToolMessage)]
            assert [result.status for result in results] == [status, "success"]


async def test_work_that_failed_fails_the_agent(tmp_path: Path) -> None:
    async with depot(tmp_path, playing(BROKEN, Turn("I found nothing."))) as graph:
        with pytest.raises(NotDoneError, match=r"^I found nothing\."):
            await ask(graph)


async def test_work_that_broke_off_says_what_was_done(tmp_path: Path) -> None:
    error = ReadableError("The model is away.")
    async with depot(tmp_path, playing(FIND, Turn("", error=error))) as graph:
        with pytest.raises(UnfinishedWorkError, match=r"^The model is away\. Completed before: find_parcel\."):
            await ask(graph)


async def test_a_step_of_a_workflow_needs_no_model(tmp_path: Path) -> None:
    def no_turn(_cue: ModelInput) -> Turn:
        raise AssertionError("the step names the tool")

    models: ModelFactory = lambda _settings, _manifest: ScriptedChatModel(script=no_turn)  # noqa: E731
    async with depot(tmp_path, models) as graph:
        step = {"tool": "find_parcel", "arguments": {"name": "box"}}
        state = await graph.ainvoke({"messages": [HumanMessage("q")], "step": step}, CONFIG, context=context())
        assert state["messages"][-1].text == "box is here."


@pytest.mark.parametrize(
    ("manifest", "started", "problem"),
    [
        (MANIFEST, False, "its tool servers have not started yet."),
        (AgentManifest.model_validate({**DEPOT, "servers": []}), True, "Its manifest names no MCP servers."),
    ],
)
async def test_without_tools_the_prompt_says_why(
    tmp_path: Path, manifest: AgentManifest, started: bool, problem: str
) -> None:
    cues: list[ModelInput] = []
    async with depot(tmp_path, playing(cues=cues), manifest=manifest, started=started, ENABLE_SKILLS="false") as graph:
        await ask(graph)
    assert cues[0].messages[0].text == (
        f"You run the depot.\n\nYou have no tools at the moment: {problem} Say so, do not invent results, and say what "
        "would be needed."
    )


def test_an_agent_with_tools_has_its_own_prompt_alone() -> None:
    assert agent_prompt("You run the depot.\n", None) == "You run the depot.\n"
    assert agent_prompt("You run the depot. \n", "Why.").startswith("You run the depot.\n\nYou have no tools")


def test_an_agent_has_its_own_model_and_the_supervisor_has_the_one_for_all() -> None:
    settings = settings_of(LLM_PROVIDER="openai", OPENAI_API_KEY="k", MODEL_NAME="all", DEPOT_MODEL_NAME="own")
    assert getattr(model_for(settings, None), "model_name", "") == "all"
    assert getattr(model_for(settings, MANIFEST), "model_name", "") == "own"
    chosen = AgentManifest.model_validate({**DEPOT, "name": "other", "model": {"name": "chosen"}})
    assert getattr(model_for(settings, chosen), "model_name", "") == "chosen"


async def handed(*turns: Turn) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """The messages of an agent, and those that the supervisor gets."""
    graph = agent("depot", ScriptedChatModel(script=turns))
    given = {"messages": [HumanMessage("q", id="q")]}
    plain = await graph.ainvoke(given, context=context())
    result = await LocalAgent(graph).ainvoke(given)
    return plain["messages"], result["messages"]


async def test_the_supervisor_gets_a_note_with_an_answer_that_was_cut_off() -> None:
    own, got = await handed(Turn("It is", metadata={"finish_reason": "length"}))
    assert [str(message.text) for message in own] == ["q", "It is"]
    assert [str(message.text) for message in got] == [
        "q",
        "It is\n\n[This answer is incomplete. The model reached its output limit before the answer was complete.]",
    ]
    assert isinstance(got[1], AIMessage)
    assert got[1].id is not None
    whole, same = await handed(Turn("It is here."))
    assert [str(message.text) for message in same] == [str(message.text) for message in whole] == ["q", "It is here."]
    assert with_cut_note("It is here.", None) == "It is here."


def test_it_can_only_be_awaited() -> None:
    one = LocalAgent(agent("depot", ScriptedChatModel(script=[])))
    assert one.name == "depot"
    with pytest.raises(NotImplementedError, match=r"^The depot agent can only be awaited"):
        one.invoke({"messages": []})


async def model_used(middleware: UnstreamedTurns, model: BaseChatModel, ctx: Any) -> BaseChatModel:
    used: list[BaseChatModel] = []

    async def handler(request: ModelRequest[Any]) -> ModelResponse[Any]:
        used.append(request.model)
        return ModelResponse(result=[AIMessage("Done.")])

    request: ModelRequest[Any] = ModelRequest(model=model, messages=[], runtime=Runtime(context=ctx))
    response = await middleware.awrap_model_call(request, handler)
    assert response.result[0].text == "Done."
    return used[0]


@pytest.mark.parametrize(
    ("inner", "options", "streams"),
    [
        (True, {}, False),
        (True, {"stream_sub_agent_text": True}, True),
        (False, {}, True),
        (False, {"stream_text": False, "stream_sub_agent_text": True}, False),
    ],
)
async def test_a_turn_is_streamed_only_where_its_text_is_read(
    inner: bool, options: dict[str, bool], streams: bool
) -> None:
    settings = settings_of(LLM_PROVIDER="openai", OPENAI_API_KEY="k", MODEL_NAME="m")
    model, other = chat_model(settings), chat_model(settings)
    whole = UnstreamedTurns(model, inner=inner)
    used = await model_used(whole, model, context(**options))
    assert (used is model) == streams
    assert bool(used.disable_streaming) == (not streams)
    assert await model_used(whole, model, None) is model
    # A middleware outside of it has chosen another model.
    assert await model_used(whole, other, context(**options)) is other
    scripted = ScriptedChatModel(script=[])
    assert await model_used(UnstreamedTurns(scripted, inner=inner), scripted, context(**options)) is scripted
