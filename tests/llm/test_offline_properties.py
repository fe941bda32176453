"""Whatever is asked: the offline model ends, calls only tools it has, and gives them arguments they accept."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ai_platform_engineering.forms.filling import FilledForm, fill
from ai_platform_engineering.forms.response import CAIPEAgentResponse
from ai_platform_engineering.offline_model import OfflineChatModel
from tests.llm.offline_library import Library
from tests.llm.offline_world import AGENTS, PROMPT, form_tool, supervisor_tools, workflow_tool

MODEL = OfflineChatModel()
TOOLS = {name: tools() for name, (_, tools) in AGENTS.items()}
SUPERVISOR_TOOLS = supervisor_tools()
STEERED_TOOLS = [*SUPERVISOR_TOOLS, workflow_tool(), form_tool()]
WORKFLOWS = SystemMessage(
    "Workflows:\n- sync_app: Sync App. Syncs an app. (keywords: app, sync; inputs: app, private, high_priority, reason)"
)

VOCABULARY = """
    show list sync create the a my and then , . ? : it them its first one all of in to for with not who which what
    guestbook payments-api checkout SHOP-118 P4711 acme/gitops#415 #88 443 10.0.0.0/16 example.com https://example.com
    app apps tickets issue incident pull request port on call version status argocd jira github comment open done
    "quoted high priority bug merge roll back again more {} [] | **
"""
WORDS = st.sampled_from([*VOCABULARY.split(), "\n", '"'])
QUESTIONS = st.one_of(st.lists(WORDS, max_size=14).map(" ".join), st.text(max_size=120))
RESULTS = st.one_of(
    st.text(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=12,
    ).map(json.dumps),
)
BUDGET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def drive(
    tools: list[Any], messages: list[BaseMessage], results: Any, turns: int, found: Any = RESULTS
) -> list[BaseMessage]:
    schemas = {item.name: item.args_schema for item in tools}
    model = MODEL.bind_tools(tools)
    for _ in range(turns):
        reply = model.invoke(messages)
        messages = [*messages, reply]
        if not reply.tool_calls:
            return messages
        assert len({call["id"] for call in reply.tool_calls}) == len(reply.tool_calls)
        for call in reply.tool_calls:
            jsonschema.validate(call["args"], schemas[call["name"]])
            status = results.draw(st.sampled_from(["success", "success", "error"]))
            content = results.draw(found)
            messages.append(ToolMessage(content, name=call["name"], tool_call_id=call["id"], status=status))
    raise AssertionError(f"no end after {turns} turns")


@BUDGET
@given(name=st.sampled_from(sorted(AGENTS)), question=QUESTIONS, results=st.data())
def test_an_agent_ends_and_its_calls_are_valid(name: str, question: str, results: Any) -> None:
    messages = drive(TOOLS[name], [HumanMessage(question)], results, turns=7)
    assert str(messages[-1].text).strip()
    made = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    assert len(made) <= 6


@BUDGET
@given(name=st.sampled_from(sorted(AGENTS)), question=QUESTIONS, results=st.data())
def test_an_agent_that_may_ask_ends_too_and_asks_nothing_twice(name: str, question: str, results: Any) -> None:
    messages = drive([*TOOLS[name], form_tool()], [HumanMessage(question)], results, turns=19)
    assert str(messages[-1].text).strip()
    made = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    forms = [call["args"] for call in made if call["name"] == "request_user_input"]
    assert len(made) - len(forms) <= 6
    assert all(forms.count(form) == 1 for form in forms)


@BUDGET
@given(questions=st.lists(QUESTIONS, min_size=1, max_size=3), results=st.data())
def test_a_conversation_with_the_supervisor_ends_and_asks_only_agents_there_are(
    questions: list[str], results: Any
) -> None:
    messages: list[BaseMessage] = []
    for question in questions:
        messages = drive(SUPERVISOR_TOOLS, [*messages, HumanMessage(question)], results, turns=4)
        assert "offline model" in str(messages[-1].text)
    asked = [
        call["args"]["subagent_type"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["name"] == "task"
    ]
    assert set(asked) <= set(AGENTS)


ARGUMENTS = """
    name application project issue_key query title limit count port url address assignee labels private status number
    host settings _ x1 newPrefix
"""
NAMES = st.sampled_from(ARGUMENTS.split())
SCALARS = st.one_of(
    st.just({"type": "string"}),
    st.just({"type": "string", "minLength": 3, "maxLength": 9}),
    st.just({"type": "string", "pattern": "^[a-z-]+$", "description": "Such as abc-1."}),
    st.just({"type": "string", "format": "uri"}),
    st.just({"enum": ["open", "InProgress", "done"]}),
    st.just({"enum": [1, 443]}),
    st.just({"const": "status"}),
    st.just({"type": "boolean"}),
    st.just({"type": "integer", "minimum": 2, "exclusiveMaximum": 443}),
    st.just({"type": "number", "exclusiveMinimum": 0}),
    st.just({"type": ["integer", "null"]}),
    st.just({"anyOf": [{"type": "null"}, {"type": "string"}], "default": None}),
    st.just({"$ref": "#/$defs/Level"}),
    st.just({}),
)


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, inner, max_size=4).flatmap(
        lambda properties: st.builds(
            lambda required: {"type": "object", "properties": properties, "required": required},
            st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([]),
        )
    )


SCHEMAS = objects(
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            inner.map(lambda items: {"type": "array", "items": items}),
            inner.map(lambda items: {"type": "array", "items": items, "minItems": 1}),
            objects(inner),
        ),
        max_leaves=4,
    )
).map(lambda schema: {**schema, "$defs": {"Level": {"type": "string", "enum": ["high", "low"]}}})


@BUDGET
@given(schema=SCHEMAS, question=QUESTIONS, verb=st.sampled_from(["list", "get", "create", "sync"]))
def test_arguments_are_valid_for_any_schema(schema: dict[str, Any], question: str, verb: str) -> None:
    tool = {"name": f"{verb}_apps", "description": "Apps and tickets.", "parameters": schema}
    reply = MODEL.bind_tools([{"type": "function", "function": tool}]).invoke([HumanMessage(f"{verb} apps {question}")])
    for call in reply.tool_calls:
        jsonschema.validate(call["args"], schema)


FITTING = {
    "text": st.sampled_from(["demo", "abc-1", "two words"]),
    "multiline": st.just("Two\nlines."),
    "url": st.just("https://example.com/x"),
    "email": st.just("a@example.com"),
    "boolean": st.booleans(),
    "number": st.sampled_from([2, 3.0, 44]),
}
# Every property is required, so that the model asks for the values that the question does not have.
DEMANDING_SCHEMAS = SCHEMAS.filter(lambda schema: schema["properties"]).map(
    lambda schema: {**schema, "required": sorted(schema["properties"])}
)


def leaves(value: Any) -> list[Any]:
    """A schema of nested lists gets the value of one field in lists of one."""
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


@BUDGET
@given(schema=DEMANDING_SCHEMAS, verb=st.sampled_from(["list", "get", "create", "sync"]), values=st.data())
def test_for_any_schema_the_call_is_made_with_what_the_form_brought(
    schema: dict[str, Any], verb: str, values: Any
) -> None:
    function = {"name": f"{verb}_apps", "description": "Apps and tickets.", "parameters": schema}
    model = MODEL.bind_tools([{"type": "function", "function": function}, form_tool()])
    messages: list[BaseMessage] = [HumanMessage(f"{verb} apps")]
    asking = model.invoke(messages)
    assume([call["name"] for call in asking.tool_calls] == ["request_user_input"])
    form = CAIPEAgentResponse.model_validate(asking.tool_calls[0]["args"]).form("apps")
    entered = {}
    for field in form.fields:
        options = list(field.field_values or ())
        entered[field.field_name] = values.draw(
            {
                **FITTING,
                "select": st.sampled_from(options or [""]),
                "multiselect": st.lists(st.sampled_from(options or [""]), min_size=1, unique=True),
            }[field.field_type]
        )
    filled = fill(form, entered)
    assert isinstance(filled, FilledForm)
    result = ToolMessage(json.dumps(filled.values), tool_call_id=str(asking.tool_calls[0]["id"]))
    (call,) = model.invoke([*messages, asking, result]).tool_calls
    assert call["name"] == function["name"]
    assert {field.field_name for field in form.fields if field.required} <= set(call["args"])
    for name, value in filled.values.items():
        for argument, typed in zip(leaves(call["args"][name]), leaves(value), strict=True):
            # The options of a form are texts, also where the schema's enum has numbers.
            assert argument == typed or str(argument) == str(typed)
            assert not (isinstance(argument, float) and isinstance(typed, int))


@BUDGET
@given(questions=st.lists(QUESTIONS, min_size=1, max_size=3), results=st.data())
def test_a_supervisor_with_workflows_ends_and_starts_one_at_most(questions: list[str], results: Any) -> None:
    messages: list[BaseMessage] = [WORKFLOWS]
    for question in questions:
        before = len(messages)
        messages = drive(STEERED_TOOLS, [*messages, HumanMessage(question)], results, turns=4)
        assert "offline model" in str(messages[-1].text)
        turns = [message.tool_calls for message in messages[before:] if isinstance(message, AIMessage)]
        started = [calls for calls in turns if any(call["name"] == "start_workflow" for call in calls)]
        assert all(len(calls) == 1 for calls in started)
        assert len(started) <= 1


LEARNED_TOOLS = Library().tools()
ASKED = """
    how do I what is a does DISTRIBUTED_AGENTS do why where explain according to the docs knowledge base runbook say
    about which settings , and ? . sync show list guestbook app documented it mean search for
"""
INQUIRIES = st.one_of(st.lists(st.sampled_from(ASKED.split()), max_size=14).map(" ".join), QUESTIONS)
PLACES = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.text(max_size=40) for name in ("document_id", "title", "section", "link", "snippet")},
        "score": st.floats(-1, 2) | st.none() | st.text(max_size=3),
    },
)
LINES = ["# a app", "| sync | b |", "|---|", "```", "- it", "", "how to sync.", "[a](b)", "`"]
FOUND = st.one_of(
    RESULTS,
    st.lists(PLACES, max_size=4).map(lambda places: json.dumps({"query": "", "results": places})),
    st.lists(st.sampled_from(LINES)).map(lambda lines: "\n".join(["Title: a", "Document: b", "Source: c", "", *lines])),
    st.just("[Search already done] Do NOT call search again."),
    st.just("[Document already retrieved] Do NOT call fetch_document again."),
).flatmap(
    lambda text: st.integers(0, len(text)).map(lambda end: text if end % 3 else text[:end] + "[Output truncated]")
)


@BUDGET
@given(questions=st.lists(INQUIRIES, min_size=1, max_size=3), results=st.data())
def test_a_supervisor_with_a_knowledge_base_ends_in_an_answer_whatever_it_finds(
    questions: list[str], results: Any
) -> None:
    messages: list[BaseMessage] = []
    for question in questions:
        before = len(messages)
        messages = drive(LEARNED_TOOLS, [*messages, HumanMessage(question)], results, turns=7, found=FOUND)
        assert "offline model" in str(messages[-1].text)
        made = [call for message in messages[before:] if isinstance(message, AIMessage) for call in message.tool_calls]
        assert sum(call["name"] == "search" for call in made) <= 3
        assert sum(call["name"] == "fetch_document" for call in made) <= 3
        cut = MODEL.invoke([*messages[:-1], HumanMessage("Write the answer now from what you have gathered above.")])
        assert str(cut.text).strip()
        assert not cut.tool_calls


@BUDGET
@given(question=QUESTIONS, results=st.data())
def test_streaming_concatenates_to_the_message(question: str, results: Any) -> None:
    messages = [HumanMessage(question)]
    model = MODEL.bind_tools(SUPERVISOR_TOOLS)
    assert "".join(str(chunk.text) for chunk in model.stream(messages)) == model.invoke(messages).text


ODD = ["a.", "1.", "a-", " and ", '"', "x", "list x and ", "x@", ":", "a:", "the first ", "it ", "\n- a", "1.1.1.1 "]


@pytest.mark.long
@pytest.mark.parametrize("piece", ODD)
def test_long_and_odd_texts_are_read_quickly(piece: str) -> None:
    started = time.process_time()
    question = HumanMessage(piece * 20_000)
    MODEL.bind_tools(SUPERVISOR_TOOLS).invoke([HumanMessage(PROMPT), AIMessage(piece * 2000), question])
    MODEL.bind_tools(TOOLS["netutils"]).invoke([question])
    MODEL.bind_tools([*TOOLS["jira"], form_tool()]).invoke([question])
    MODEL.bind_tools(STEERED_TOOLS).invoke([WORKFLOWS, question])
    MODEL.bind_tools(STEERED_TOOLS).invoke([WORKFLOWS, HumanMessage(f"sync app {piece * 20_000}")])
    MODEL.invoke([HumanMessage("x"), HumanMessage(f"The workflow {piece * 20_000}")])
    assert time.process_time() - started < 3
