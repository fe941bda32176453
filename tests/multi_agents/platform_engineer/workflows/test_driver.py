"""The driver in a real supervisor's graph, with agents that note what they were given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from deepagents.backends import StateBackend
from deepagents.middleware.subagents import SubAgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from ai_platform_engineering.events import Event, FinalResult, PlanUpdated, ToolStarted
from ai_platform_engineering.forms.answers import Dismissed, Submitted, answer_data
from ai_platform_engineering.graphs.agent_graph import PRIVATE_STATE, Graph, Middleware, agent_graph
from ai_platform_engineering.graphs.skills import skills
from ai_platform_engineering.graphs.skills_offer import SkillOffers
from ai_platform_engineering.graphs.workflow_step import STEP
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import plan_tool
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Workflow
from ai_platform_engineering.multi_agents.platform_engineer.workflows.driver import WorkflowDriver
from ai_platform_engineering.multi_agents.platform_engineer.workflows.progress import WORKFLOW_KEY
from ai_platform_engineering.runs.translation import STREAM_MODES, Translation
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from tests.multi_agents.platform_engineer.workflows.examples import BUILT, LAUNCH, VALUES
from tests.runs.graphs import context, settings_of

Reply = Callable[[Mapping[str, Any]], str]

PING = Workflow.model_validate(
    {
        "name": "ping",
        "title": "Ping",
        "description": "Pings.",
        "steps": [{"name": "ping", "title": "Ping it", "agent": "builder", "tool": "ping"}],
    }
)


class _AgentState(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    step: NotRequired[dict[str, Any] | None]
    workflow: NotRequired[Any]


@dataclass
class WorkflowSystem:
    """A supervisor with two agents. `asked` is what the agents got, `cues` what the supervisor's model was given."""

    replies: dict[str, Reply]
    part: Callable[[ModelInput], Turn] = lambda cue: Turn("Here is the answer.")
    environ: dict[str, str] = field(default_factory=dict)
    middleware: Sequence[Middleware] = ()
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    cues: list[ModelInput] = field(default_factory=list)

    def __post_init__(self) -> None:
        def part(cue: ModelInput) -> Turn:
            self.cues.append(cue)
            return self.part(cue)

        delegation = SubAgentMiddleware(
            backend=StateBackend(),
            subagents=[{"name": name, "description": name, "runnable": self._agent(name)} for name in self.replies],
            task_description="{available_agents}",
            private_state_keys=PRIVATE_STATE | {WORKFLOW_KEY},
        )
        driver = WorkflowDriver({LAUNCH.name: LAUNCH, PING.name: PING})
        self.graph: Graph = agent_graph(
            settings_of(**self.environ),
            ScriptedChatModel(script=part),
            [plan_tool()],
            "You supervise.",
            name="supervisor",
            middleware=[driver, *self.middleware, delegation],
            agents=list(self.replies),
            checkpointer=InMemorySaver(),
        )
        self.events: list[Event] = []

    def _agent(self, name: str) -> Graph:
        def call(state: _AgentState) -> dict[str, Any]:
            assert "workflow" not in state
            text = self.replies[name](state)
            self.asked.append((name, str(state["messages"][-1].text), state.get("step")))
            return {"messages": [AIMessage(text)]}

        graph = StateGraph(_AgentState)
        graph.add_node("call", call)
        graph.add_edge(START, "call")
        graph.add_edge("call", END)
        return graph.compile(name=name)

    async def ask(self, question: str) -> list[Event]:
        self.events = []
        return await self._stream({"messages": [HumanMessage(question)]})

    async def answer(self, answer: dict[str, Any]) -> list[Event]:
        (waiting,) = (await self.state()).interrupts
        return await self._stream(Command(resume={waiting.id: answer}))

    async def form(self) -> dict[str, Any]:
        (waiting,) = (await self.state()).interrupts
        return dict(waiting.value)

    async def state(self) -> Any:
        return await self.graph.aget_state({"configurable": {"thread_id": "t"}})

    async def results(self) -> list[ToolMessage]:
        return [message for message in (await self.state()).values["messages"] if isinstance(message, ToolMessage)]

    async def _stream(self, given: Any) -> list[Event]:
        translation = Translation("supervisor", history=self.events)
        events: list[Event] = []
        async for part in self.graph.astream(
            given,
            {"configurable": {"thread_id": "t"}},
            context=context(),
            stream_mode=STREAM_MODES,
            subgraphs=True,
            version="v2",
            durability="exit",
        ):
            events += translation.feed(part)
        events += translation.conclude()
        self.events += events
        return events


def says(text: str) -> Reply:
    return lambda state: text


def fails(reason: str) -> Reply:
    def reply(state: Mapping[str, Any]) -> str:
        raise ToolException(reason)

    return reply


def system(builder: Reply | None = None, teller: Reply | None = None, **changes: Any) -> WorkflowSystem:
    replies = {"builder": builder or says(BUILT), "teller": teller or says("Done: SHOP-12.")}
    return WorkflowSystem(replies, **changes)


def plan_of(events: list[Event]) -> list[tuple[str, str]]:
    """The plan as it stands at the end."""
    last = [event for event in events if isinstance(event, PlanUpdated)][-1]
    return [(step.title, step.status) for step in last.steps]


async def launched(system: WorkflowSystem, **values: Any) -> list[Event]:
    await system.ask("launch service")
    return await system.answer(answer_data(Submitted({**VALUES, **values})))


async def test_form_values_steps_in_order_answer() -> None:
    shop = system()
    assert not [event for event in await shop.ask("Launch Service") if isinstance(event, FinalResult)]
    form = await shop.form()
    assert form["input_title"] == "Launch Service"
    assert "form_id" not in form
    assert [entry["field_name"] for entry in form["input_fields"]] == ["service", "replicas", "ticket", "note"]
    assert shop.cues == [], "a workflow asked for by name needs no model"
    assert shop.asked == []

    events = await shop.answer(answer_data(Submitted(VALUES)))
    assert [(agent, step) for agent, _, step in shop.asked] == [
        ("builder", {"tool": "build", "arguments": {"name": "demo", "replicas": 2}}),
        ("teller", {"instruction": True}),
        ("teller", {"instruction": True}),
    ]
    assert [words for _, words, _ in shop.asked[1:]] == [
        "Create a ticket about https://x.test/1.",
        "Announce SHOP-12 (3).",
    ]
    assert plan_of(events) == [
        ("Build it", "completed"),
        ("Open a ticket", "completed"),
        ("Announce it", "completed"),
    ]
    titles = {event.title for event in events if isinstance(event, PlanUpdated)}
    assert titles == {"Launch Service"}
    assert isinstance(events[-1], FinalResult)
    assert events[-1].text == "Here is the answer."


async def test_the_model_has_one_turn_without_tools_and_is_told_every_outcome() -> None:
    shop = system()
    await launched(shop)
    (cue,) = shop.cues
    assert cue.tools == ()
    instruction = str(cue.messages[-1].text)
    assert cue.messages[-1].type == "human"
    assert instruction.startswith("The workflow Launch Service has ended.")
    assert "- Build it (builder): completed, url: https://x.test/1, count: 3" in instruction
    assert "- Open a ticket (teller): completed, key: SHOP-12" in instruction
    state = (await shop.state()).values
    assert not [
        message
        for message in state["messages"]
        if str(message.text).startswith("The workflow Launch Service has ended")
    ]
    assert (state[WORKFLOW_KEY], state[STEP]) == (None, None)


async def test_a_model_that_does_not_answer_cannot_hide_the_outcomes() -> None:
    shop = system(part=lambda cue: Turn("", [("task", {"description": "x", "subagent_type": "builder"})]))
    events = await launched(shop)
    assert isinstance(events[-1], FinalResult)
    assert "Open a ticket (teller): completed, key: SHOP-12" in events[-1].text
    assert len(shop.asked) == 3


async def test_a_failing_step_stops_the_workflow() -> None:
    shop = system(builder=fails("The builder has no bricks."))
    events = await launched(shop)
    assert shop.asked == []
    assert plan_of(events) == [("Build it", "failed"), ("Open a ticket", "pending"), ("Announce it", "pending")]
    instruction = str(shop.cues[0].messages[-1].text)
    assert "was stopped because a step failed" in instruction
    assert "- Build it (builder): failed: The builder has no bricks." in instruction
    assert "- Announce it (teller): not done, because an earlier step failed" in instruction
    assert isinstance(events[-1], FinalResult)


async def test_a_step_without_its_output_stops_the_workflow() -> None:
    shop = system(teller=says("I would rather not."))
    events = await launched(shop)
    assert [agent for agent, _, _ in shop.asked] == ["builder", "teller"]
    instruction = str(shop.cues[0].messages[-1].text)
    assert "- Open a ticket (teller): failed: teller finished, but its result has no key" in instruction
    assert plan_of(events) == [("Build it", "completed"), ("Open a ticket", "failed"), ("Announce it", "pending")]


async def test_a_condition_that_does_not_hold_skips_its_step() -> None:
    shop = system()
    events = await launched(shop, ticket=False)
    assert [agent for agent, _, _ in shop.asked] == ["builder"]
    assert plan_of(events) == [
        ("Build it", "completed"),
    ]


async def test_a_canceled_form_starts_nothing_and_the_model_is_told() -> None:
    shop = system()
    await shop.ask("run the launch service workflow")
    events = await shop.answer(answer_data(Dismissed("not today")))
    (result,) = await shop.results()
    assert str(result.text).startswith("The person canceled the form: not today")
    assert shop.asked == []
    assert (await shop.state()).values.get(WORKFLOW_KEY) is None
    assert isinstance(events[-1], FinalResult)
    assert len(shop.cues) == 1


async def test_an_answer_that_is_none_starts_nothing() -> None:
    shop = system()
    await shop.ask("launch service")
    await shop.answer({"what": "ever"})
    (result,) = await shop.results()
    assert result.status == "error"
    assert shop.asked == []


async def test_the_model_may_start_one_and_fill_in_what_was_said() -> None:
    values = {"service": "demo", "replicas": "many", "other": 1}
    start = Turn("", [("start_workflow", {"name": "launch_service", "values": values})])
    shop = system(part=lambda cue: start if cue.tools and cue.turn == 0 else Turn("Done."))
    await shop.ask("please launch demo")
    proposed = {entry["field_name"]: entry["value"] for entry in (await shop.form())["input_fields"]}
    assert proposed == {"service": "demo", "replicas": None, "ticket": None, "note": None}
    await shop.answer(answer_data(Submitted(VALUES)))
    assert len(shop.asked) == 3


async def test_an_unknown_name_is_told_with_the_nearest() -> None:
    start = Turn("", [("start_workflow", {"name": "launch-servise"})])
    shop = system(part=lambda cue: start if cue.turn == 0 else Turn("Done."))
    await shop.ask("please launch demo")
    (result,) = await shop.results()
    assert (result.status, str(result.text)) == (
        "error",
        "There is no workflow 'launch-servise'; did you mean 'launch_service'.",
    )


async def test_of_two_in_one_turn_only_the_first_is_started() -> None:
    calls = [("start_workflow", {"name": "ping"}), ("start_workflow", {"name": "launch_service"})]
    shop = system(part=lambda cue: Turn("", calls) if cue.tools and cue.turn == 0 else Turn("Done."))
    events = await shop.ask("do both, please")
    assert isinstance(events[-1], FinalResult)
    assert [agent for agent, _, _ in shop.asked] == ["builder"]
    assert [result.status for result in await shop.results()].count("error") == 1


async def test_a_workflow_without_inputs_starts_at_once() -> None:
    shop = system()
    events = await shop.ask("ping")
    assert shop.asked[0][2] == {"tool": "ping", "arguments": {}}
    assert isinstance(events[-1], FinalResult)


async def test_the_same_workflow_runs_again_in_the_same_conversation() -> None:
    shop = system()
    await launched(shop)
    events = await launched(shop, service="other")
    assert len(shop.asked) == 6
    assert isinstance(events[-1], FinalResult)
    ids = [result.tool_call_id for result in await shop.results()]
    assert len(set(ids)) == len(ids)


async def test_a_step_that_waits_for_a_person_goes_on_with_its_answer() -> None:
    def asks(state: Mapping[str, Any]) -> str:
        return f'{{"links": [{{"url": "{interrupt({"question": "which?"})}"}}], "count": 1}}'

    shop = system(builder=asks)
    events = await launched(shop)
    assert not [event for event in events if isinstance(event, FinalResult)]
    (waiting,) = (await shop.state()).interrupts
    events = await shop._stream(Command(resume={waiting.id: "https://y.test"}))
    assert shop.asked[1][1] == "Create a ticket about https://y.test."
    assert isinstance(events[-1], FinalResult)


async def test_a_new_question_ends_a_workflow_that_was_broken_off() -> None:
    def asks(state: Mapping[str, Any]) -> str:
        return str(interrupt({"question": "which?"}))

    shop = system(builder=asks)
    await launched(shop)
    events = await shop.ask("how are you?")
    assert shop.cues[-1].question == "how are you?"
    assert shop.cues[-1].tools
    assert isinstance(events[-1], FinalResult)
    state = (await shop.state()).values
    assert (state[WORKFLOW_KEY], state[STEP]) == (None, None)


async def test_a_skill_that_is_called_by_name_ends_a_workflow_that_was_broken_off(tmp_path: Path) -> None:
    def asks(state: Mapping[str, Any]) -> str:
        return str(interrupt({"question": "which?"}))

    settings = settings_of(DATA_DIR=str(tmp_path))
    catalog = SkillCatalog(settings)
    await catalog.start()
    middleware = [*skills(SkillOffers(catalog, settings, "supervisor"), settings, commands=True)]
    shop = system(builder=asks, middleware=middleware)
    await launched(shop)
    events = await shop.ask("/incident-triage checkout")
    assert [event.skill for event in events if isinstance(event, ToolStarted)] == ["incident-triage"]
    assert isinstance(events[-1], FinalResult)
    assert "checkout" in str((await shop.results())[-1].text)
    assert shop.cues[-1].tools
    state = (await shop.state()).values
    assert (state[WORKFLOW_KEY], state[STEP]) == (None, None)
    # A workflow that ends has one turn in which the model only writes: no skills are offered for it.
    other = system(middleware=middleware)
    await other.ask("ping")
    assert not other.cues[-1].tools
    assert "Skills are " not in str(other.cues[-1].messages[0].text)
    await catalog.aclose()


async def test_at_the_step_limit_the_rest_is_told_as_not_done() -> None:
    shop = system(environ={"LANGGRAPH_RECURSION_LIMIT": "7"})
    await shop.ask("launch service")
    events = await shop.answer(answer_data(Submitted(VALUES)))
    assert isinstance(events[-1], FinalResult)
    prompts = [str(message.text) for message in shop.cues[-1].messages if message.type == "human"]
    (ending,) = (text for text in prompts if "was stopped at the step limit" in text)
    assert ending.splitlines()[1].startswith("- Build it (builder): completed")
    assert ending.splitlines()[3] == "- Announce it (teller): not done"


async def test_other_questions_and_other_delegations_are_not_touched() -> None:
    task = Turn("", [("task", {"description": "build", "subagent_type": "builder"})])
    shop = system(part=lambda cue: task if cue.turn == 0 else Turn("Done."))
    await shop.ask("launch service for me with three replicas")
    assert shop.asked == [("builder", "build", None)]
    assert "start_workflow" in shop.cues[0].tools
