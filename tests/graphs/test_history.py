"""Whatever a conversation has become, a model is sent a history that its provider accepts."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from ai_platform_engineering.graphs.history import OUTCOME_UNKNOWN, REPEATABLE, unanswered_calls, valid_history
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from tests.graphs.strict_provider import strict_provider
from tests.runs.graphs import agent, context

PROVIDERS = ("openai chat", "openai responses", "anthropic", "bedrock")
_PACKAGES = {"anthropic": "langchain_anthropic", "bedrock": "langchain_aws"}

ids = st.sampled_from(["a", "b", "a-2", ""])
names = st.sampled_from(["search", "create_issue", "functions.search", ""])
contents = st.sampled_from(["", " ", "text", [], ["", "text"], [{"type": "text", "text": " "}]])


@st.composite
def turns(draw: st.DrawFn) -> AIMessage:
    """An assistant turn whose calls are in any of the places where providers put them."""
    text = draw(st.sampled_from(["", " ", "Let me see."]))
    calls = draw(st.lists(st.tuples(ids, names), max_size=3))
    where = [draw(st.sets(st.sampled_from(["calls", "invalid", "block", "additional"]), min_size=1)) for _ in calls]
    blocks: list[Any] = draw(st.sampled_from([[], [{"type": "thinking", "thinking": "Hm.", "signature": "s"}]]))
    blocks = [*blocks, {"type": "text", "text": text}]
    valid, invalid, additional = [], [], []
    for (call_id, name), places in zip(calls, where, strict=True):
        if "calls" in places:
            valid.append({"id": call_id, "name": name, "args": {"q": 1}, "type": "tool_call"})
        elif "invalid" in places:
            invalid.append({"id": call_id, "name": name, "args": '{"q": ', "error": None, "type": "invalid_tool_call"})
        if "block" in places:
            blocks.append({"type": "tool_use", "id": call_id, "name": name, "input": {"q": 1}})
        if "additional" in places:
            function = {"name": name, "arguments": '{"q": 1}'}
            additional.append({"id": call_id, "type": "function", "function": function})
    return AIMessage(
        blocks if draw(st.booleans()) or "block" in {place for places in where for place in places} else text,
        tool_calls=valid,
        invalid_tool_calls=invalid,
        additional_kwargs={"tool_calls": additional} if additional else {},
    )


@st.composite
def almost_valid(draw: st.DrawFn) -> list[AnyMessage]:
    """Questions and answers with calls, as most providers return them, with at most one defect besides their ids."""
    history: list[AnyMessage] = draw(st.sampled_from([[], [SystemMessage("Be brief.")]]))
    for _ in range(draw(st.integers(1, 2))):
        calls = draw(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.just("search")), max_size=2))
        history += [HumanMessage("text"), _turn("Let me see.", calls)]
        history += [ToolMessage("text", tool_call_id=call_id) for call_id, _ in calls]
        history += [AIMessage("text")]
    place = draw(st.integers(0, len(history) - 1))
    defects: list[list[AnyMessage]] = [
        history[place : place + 1],
        [],
        [history[place], history[place]],
        [history[place], ToolMessage("text", tool_call_id="a")],
        [history[place], SystemMessage("text")],
        [history[place], HumanMessage(" ")],
        [history[place], AIMessage("")],
        [history[place], AIMessage("text")],
        [history[place], _turn("", [("", "search")]), ToolMessage("text", tool_call_id="")],
        [history[place], _turn("", [("z", "a.b")]), ToolMessage("text", tool_call_id="z")],
        [history[place], _turn("", [("z", "search")]), ToolMessage("", tool_call_id="z")],
        [AIMessage("text", additional_kwargs={"tool_calls": [{"id": "z", "function": {"name": "search"}}]})],
    ]
    return [*history[:place], *draw(st.sampled_from(defects)), *history[place + 1 :]]


def _turn(text: str, calls: Sequence[tuple[str, str]]) -> AIMessage:
    return AIMessage(text, tool_calls=[{"id": call_id, "name": name, "args": {}} for call_id, name in calls])


messages = st.lists(
    st.one_of(
        turns(),
        st.builds(HumanMessage, contents),
        st.builds(SystemMessage, st.sampled_from(["", "Be brief."])),
        st.builds(ToolMessage, contents, tool_call_id=ids, name=names),
    ),
    min_size=1,
    max_size=8,
)


def model_of(provider: str, address: str) -> BaseChatModel:
    if (package := _PACKAGES.get(provider)) and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    match provider:
        case "anthropic":
            from langchain_anthropic import ChatAnthropic

            return ChatAnthropic(model="m", base_url=address, api_key="k", max_retries=0)
        case "bedrock":
            from langchain_aws import ChatBedrockConverse

            return ChatBedrockConverse(
                model="anthropic.claude-3-haiku-20240307-v1:0",
                base_url=address,
                region_name="us-east-1",
                aws_access_key_id="k",
                aws_secret_access_key="s",
            )
        case _:
            responses = provider == "openai responses"
            return ChatOpenAI(
                model="m", base_url=f"{address}/v1", api_key="k", max_retries=0, use_responses_api=responses
            )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with strict_provider() as address:
        yield address


def search(q: str) -> str:
    """Searches."""
    return q


TOOL = StructuredTool.from_function(search)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_accepts_it(provider: str, address: str) -> None:
    model = model_of(provider, address).bind_tools([TOOL])

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(messages)
    def accepts(history: list[AnyMessage]) -> None:
        assert model.invoke([SystemMessage("You help."), *valid_history(history)]).text == "ok"

    accepts()


BROKEN: dict[str, list[AnyMessage]] = {
    "a reused id after a cancel": [
        HumanMessage("one"),
        AIMessage("", tool_calls=[{"id": "a", "name": "search", "args": {}}]),
        HumanMessage("two"),
        AIMessage("", tool_calls=[{"id": "a", "name": "search", "args": {}}]),
        ToolMessage("found", tool_call_id="a"),
        HumanMessage("three"),
    ],
    "a result after a later question": [
        HumanMessage("one"),
        AIMessage("", tool_calls=[{"id": "a", "name": "search", "args": {}}]),
        HumanMessage("two"),
        ToolMessage("found", tool_call_id="a"),
    ],
    "a result without a call": [HumanMessage("one"), ToolMessage("found", tool_call_id="a"), HumanMessage("two")],
    "a call in a content block alone": [
        HumanMessage("one"),
        AIMessage([{"type": "tool_use", "id": "a", "name": "search", "input": {}}]),
        HumanMessage("two"),
    ],
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("provider", ["openai chat", "anthropic"])
def test_the_stand_in_refuses_what_providers_refuse(what: str, provider: str, address: str) -> None:
    if (provider, what) == ("openai chat", "a call in a content block alone"):
        pytest.skip("this client does not send such blocks")
    model = model_of(provider, address).bind_tools([TOOL])
    with pytest.raises(Exception, match="400"):
        model.invoke(BROKEN[what])
    assert model.invoke(valid_history(BROKEN[what])).text == "ok"


def test_results_stay_with_the_turn_that_asked_for_them() -> None:
    reused = valid_history(BROKEN["a reused id after a cancel"])
    assert [str(message.text) for message in reused if message.type == "tool"] == [OUTCOME_UNKNOWN, "found"]
    late = valid_history(BROKEN["a result after a later question"])
    assert [message.type for message in late] == ["human", "ai", "tool", "human"]
    assert str(late[2].text) == "found"


@settings(max_examples=500, deadline=None)
@given(almost_valid())
def test_a_history_that_is_taken_for_valid_is_not_changed_by_a_repair(history: list[AnyMessage]) -> None:
    # A message of another kind is never taken for valid.
    other = ChatMessage("any", role="user")
    assert valid_history([*history, other]) == [*valid_history(history), other]


@settings(max_examples=200, deadline=None)
@given(messages)
def test_it_is_repaired_once_and_for_all(history: list[AnyMessage]) -> None:
    repaired = valid_history(history)
    assert valid_history(repaired) is repaired
    before = json.dumps([message.model_dump() for message in history], default=str)
    valid_history(history)
    assert json.dumps([message.model_dump() for message in history], default=str) == before


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.lists(ids, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=4), st.data())
def test_no_result_that_has_a_call_is_lost(rounds: Sequence[tuple[list[str], bool]], data: st.DataObject) -> None:
    """Each turn's results come in any order, perhaps after the next question, with others' in between."""
    history: list[AnyMessage] = []
    expected: dict[int, list[str]] = {}
    for number, (called, late) in enumerate(rounds):
        history += [HumanMessage(f"question {number}")]
        history += [AIMessage(f"turn {number}", tool_calls=[{"id": i, "name": "t", "args": {}} for i in called])]
        answered = data.draw(st.permutations(called))[: data.draw(st.integers(0, len(called)))]
        results = [ToolMessage(f"{number}.{place}", tool_call_id=i) for place, i in enumerate(answered)]
        expected[number] = [str(result.text) for result in results]
        history += [HumanMessage("and"), *results] if late else [*results, HumanMessage("and")]
        history.append(ToolMessage("orphan", tool_call_id="unknown"))
    repaired = valid_history(history)
    for number, texts in expected.items():
        place = next(p for p, message in enumerate(repaired) if str(message.text) == f"turn {number}")
        after = repaired[place + 1 : place + 1 + len(rounds[number][0])]
        assert [str(message.text) for message in after] == texts + [OUTCOME_UNKNOWN] * (len(after) - len(texts))
        turn = repaired[place]
        assert isinstance(turn, AIMessage)
        assert sorted(call["id"] or "" for call in turn.tool_calls) == sorted(m.tool_call_id for m in after)  # type: ignore[union-attr]


def test_a_valid_history_is_left_alone() -> None:
    history: list[AnyMessage] = [
        SystemMessage("Be brief."),
        HumanMessage("one"),
        AIMessage(
            [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "a", "name": "search", "input": {"q": 1}},
                {"type": "tool_use", "id": "b", "name": "search", "input": {"q": 2}},
            ],
            tool_calls=[{"id": i, "name": "search", "args": {"q": n}} for n, i in ((1, "a"), (2, "b"))],
        ),
        ToolMessage("second", tool_call_id="b"),
        ToolMessage("first", tool_call_id="a"),
        AIMessage("Both."),
        HumanMessage("two"),
    ]
    assert valid_history(history) is history


def test_duplicate_ids_are_made_distinct_wherever_the_turn_has_them() -> None:
    call = {"id": "a", "name": "search", "args": {}}
    block = {"type": "tool_use", "id": "a", "name": "search", "input": {}}
    raw = {"id": "a", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    turn = AIMessage([block, block], tool_calls=[call, call], additional_kwargs={"tool_calls": [raw, raw]})
    history: list[AnyMessage] = [
        HumanMessage("q"),
        turn,
        ToolMessage("first", tool_call_id="a"),
        ToolMessage("second", tool_call_id="a"),
    ]
    _, repaired, *results = valid_history(history)
    assert isinstance(repaired, AIMessage)
    assert [call["id"] for call in repaired.tool_calls] == ["a", "a-2"]
    assert [block["id"] for block in repaired.content if isinstance(block, dict)] == ["a", "a-2"]
    assert [raw["id"] for raw in repaired.additional_kwargs["tool_calls"]] == ["a", "a-2"]
    assert [(result.text, result.tool_call_id) for result in results] == [("first", "a"), ("second", "a-2")]  # type: ignore[union-attr]


def test_what_only_reads_can_be_repeated() -> None:
    calls = [{"id": "a", "name": "search", "args": {}}, {"id": "b", "name": "create_issue", "args": {}}]
    history: list[AnyMessage] = [HumanMessage("q"), AIMessage("", tool_calls=calls)]
    repaired = valid_history(history, repeatable={"search"})
    assert [str(message.text) for message in repaired[2:]] == [REPEATABLE, OUTCOME_UNKNOWN]


def test_the_unanswered_calls_of_the_last_turn() -> None:
    history = BROKEN["a reused id after a cancel"]
    assert [call.id for call in unanswered_calls(history[:2])] == ["a"]
    assert unanswered_calls(history) == []
    assert [call.id for call in unanswered_calls([*history[:4], HumanMessage("and")])] == ["a"]
    calls = [{"id": i, "name": "search", "args": {}} for i in ("a", "b", "c")]
    turn = AIMessage("", tool_calls=calls)
    assert [call.id for call in unanswered_calls([HumanMessage("q"), turn, ToolMessage("r", tool_call_id="b")])] == [
        "a",
        "c",
    ]
    assert unanswered_calls([turn, HumanMessage("q"), AIMessage("No calls.")]) == []
    assert unanswered_calls([HumanMessage("q")]) == unanswered_calls([]) == []


def call(call_id: str, name: str = "search", **args: Any) -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": args}


def shape(messages: Sequence[AnyMessage]) -> list[tuple[str, Any]]:
    return [(message.type, message.content) for message in messages]


def ids_of(messages: Sequence[AnyMessage]) -> list[tuple[list[str | None], list[str]]]:
    """The ids of the calls of each turn, and those of all results after it."""
    found: list[tuple[list[str | None], list[str]]] = []
    for message in messages:
        if isinstance(message, AIMessage):
            found.append(([call["id"] for call in message.tool_calls], []))
        elif isinstance(message, ToolMessage):
            found[-1][1].append(message.tool_call_id)
    return found


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([], []),
        ([AIMessage("Hello.")], [("human", "(start of the conversation)"), ("ai", "Hello.")]),
        ([SystemMessage("Be brief.")], [("system", "Be brief."), ("human", "(start of the conversation)")]),
        (
            [SystemMessage("Be brief."), AIMessage("Hello."), HumanMessage("q")],
            [("system", "Be brief."), ("human", "(start of the conversation)"), ("ai", "Hello."), ("human", "q")],
        ),
        ([AIMessage(""), HumanMessage("q")], [("human", "q")]),
    ],
    ids=["nothing", "an answer", "instructions", "instructions and an answer", "an empty answer"],
)
def test_the_first_message_after_the_instructions_is_the_users(
    given: list[AnyMessage], sent: list[tuple[str, Any]]
) -> None:
    assert shape(valid_history(given)) == sent


def test_instructions_in_the_middle_become_the_users_and_empty_ones_are_dropped() -> None:
    given: list[AnyMessage] = [
        SystemMessage(" "),
        SystemMessage("Be brief."),
        AIMessage(" "),
        SystemMessage(["And polite.", ""]),
        HumanMessage("q"),
        SystemMessage("Hurry.", id="s"),
        SystemMessage(""),
    ]
    repaired = valid_history(given)
    assert shape(repaired) == [
        ("system", "Be brief."),
        ("system", [{"type": "text", "text": "And polite."}]),
        ("human", "q"),
        ("human", "Hurry."),
    ]
    assert repaired[-1].id == "s"


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
TEXT = {"type": "text", "text": "words"}


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ([THOUGHT], None),
        ([{"type": "redacted_thinking", "data": "x"}, {"type": "reasoning"}, {"type": "reasoning_content"}], None),
        ([THOUGHT, {"type": "text", "text": " \n"}], None),
        ([], None),
        ([THOUGHT, TEXT], [THOUGHT, TEXT]),
        ([{"type": "image", "url": "u"}], [{"type": "image", "url": "u"}]),
        (["words", " "], [TEXT]),
        ([{"type": "text"}, {"type": "text", "text": None}, TEXT], [TEXT]),
    ],
)
def test_a_turn_that_says_nothing_is_dropped_and_blank_texts_of_others_are(content: Any, sent: Any) -> None:
    _, *rest = valid_history([HumanMessage("q"), AIMessage(content, id="m"), HumanMessage("and")])
    assert shape(rest) == ([] if sent is None else [("ai", sent)]) + [("human", "and")]
    assert sent is None or rest[0].id == "m"


def test_a_turn_with_calls_may_say_nothing() -> None:
    blank = AIMessage([{"type": "text", "text": ""}, THOUGHT], tool_calls=[call("a")])
    _, turn, _ = valid_history([HumanMessage("q"), blank, ToolMessage("r", tool_call_id="a")])
    assert turn.content == [THOUGHT]


@pytest.mark.parametrize("empty", ["", " \n", [], [{"type": "text", "text": " "}]])
def test_empty_messages_and_results_have_words_that_say_so(empty: Any) -> None:
    turn = AIMessage("", tool_calls=[call("a")])
    repaired = valid_history([HumanMessage(empty, id="h"), turn, ToolMessage(empty, tool_call_id="a", id="t")])
    assert shape(repaired) == [("human", "(empty message)"), ("ai", ""), ("tool", "(no output)")]
    assert [message.id for message in repaired] == ["h", None, "t"]


def test_a_message_of_another_kind_is_sent_as_it_is() -> None:
    other = ChatMessage("words", role="critic")
    question = HumanMessage("q")
    given: list[Any] = [SystemMessage("s"), other, SystemMessage("late"), question]
    assert shape(valid_history(given)) == [
        ("system", "s"),
        ("human", "(start of the conversation)"),
        ("chat", "words"),
        ("human", "late"),
        ("human", "q"),
    ]


def test_a_call_without_a_result_has_one_that_says_so() -> None:
    _, _, missing = valid_history([HumanMessage("q"), AIMessage("", tool_calls=[call("a", "create")])])
    assert isinstance(missing, ToolMessage)
    assert (missing.name, missing.tool_call_id, missing.status) == ("create", "a", "error")


def test_a_second_result_of_a_call_is_dropped() -> None:
    results = [ToolMessage(text, tool_call_id=i) for text, i in (("1", "a"), ("2", "b"), ("3", "a"))]
    turn = AIMessage("", tool_calls=[call("a"), call("b")])
    assert [str(message.text) for message in valid_history([HumanMessage("q"), turn, *results])[2:]] == ["1", "2"]


def test_ids_are_distinct_over_the_whole_conversation_and_none_that_is_there_is_given_again() -> None:
    given: list[AnyMessage] = [HumanMessage("q")]
    for ids in (["a", "a", ""], ["a", "a-3"], ["", "x" * 40], ["x" * 40]):
        given.append(AIMessage("", tool_calls=[call(i) for i in ids]))
        given += [ToolMessage(f"of {i}", tool_call_id=i, id=f"result {i}") for i in ids]
    repaired = valid_history(given)
    assert ids_of(repaired) == [
        (ids, ids) for ids in (["a", "a-2", "call-2"], ["a-4", "a-3"], ["call-3", "x" * 40], [f"{'x' * 32}-2"])
    ]
    renamed = [message for message in repaired if isinstance(message, ToolMessage)][3]
    assert (renamed.tool_call_id, renamed.text, renamed.id) == ("a-4", "of a", "result a")


def test_the_call_with_a_new_id_keeps_its_name_and_arguments() -> None:
    turn = AIMessage("", tool_calls=[call("a", q=1), call("a", "create", q=2)])
    repaired = valid_history([HumanMessage("q"), turn])[1]
    assert isinstance(repaired, AIMessage)
    assert [(c["id"], c["name"], c["args"]) for c in repaired.tool_calls] == [
        ("a", "search", {"q": 1}),
        ("a-2", "create", {"q": 2}),
    ]


async def test_the_model_reads_that_an_interrupted_call_only_reads() -> None:
    reads = StructuredTool.from_function(search, metadata={"read_only": True})
    writes = StructuredTool.from_function(search, name="create", metadata={"read_only": "yes"})
    unknown = StructuredTool.from_function(search, name="other")
    results: list[tuple[str | None, str]] = []

    def part(cue: ModelInput) -> Turn:
        results.extend((m.name, str(m.text)) for m in cue.messages if isinstance(m, ToolMessage))
        return Turn("Done.")

    interrupted = AIMessage("", tool_calls=[call("a"), call("b", "create"), call("c", "other")])
    given = [HumanMessage("q"), interrupted, HumanMessage("and?")]
    graph = agent("jira", ScriptedChatModel(script=part), [reads, writes, unknown])
    await graph.ainvoke({"messages": given}, context=context())
    assert results == [("search", REPEATABLE), ("create", OUTCOME_UNKNOWN), ("other", OUTCOME_UNKNOWN)]
