"""The calls of an assistant message in every place where providers put them, and the message with other calls."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from ai_platform_engineering.graphs.tool_call_blocks import MessageCall, calls_of, with_calls


def block(kind: str, call_id: str, name: str, args: Any) -> dict[str, Any]:
    keys = {"tool_use": ("id", "input"), "tool_call": ("id", "args"), "function_call": ("call_id", "arguments")}[kind]
    return {"type": kind, keys[0]: call_id, "name": name, keys[1]: args, "kept": "as it is"}


def raw(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments, "strict": True}}


def message(
    *content: Any, calls: list[Any] | None = None, invalid: list[Any] | None = None, additional: Any = None
) -> AIMessage:
    turn = AIMessage(list(content) or "", tool_calls=calls or [], invalid_tool_calls=invalid or [])
    # Not at once, because LangChain would copy them to `tool_calls`.
    return turn if additional is None else turn.model_copy(update={"additional_kwargs": _additional(additional)})


def _additional(calls: Any) -> dict[str, Any]:
    return {"tool_calls": calls, "other": 1}


VALID = {"id": "a", "name": "search", "args": {"q": 1}, "type": "tool_call"}
SEARCH = MessageCall("a", "search", {"q": 1})


@pytest.mark.parametrize(
    "turn",
    [
        message(calls=[VALID]),
        message(invalid=[{"id": "a", "name": "search", "args": '{"q": 1}', "error": None}]),
        message(block("tool_use", "a", "search", {"q": 1})),
        message(block("tool_use", "a", "search", '{"q": 1}')),
        message(block("tool_call", "a", "search", {"q": 1})),
        message(block("function_call", "a", "search", '{"q": 1}')),
        message({"type": "tool_use", "id": "a", "name": "search", "input": {}, "partial_json": '{"q": 1}'}),
        message(additional=[raw("a", "search", '{"q": 1}')]),
        message(
            "words",
            {"type": "text", "text": "words"},
            block("tool_use", "a", "search", {"q": 1}),
            calls=[VALID],
            additional=[raw("a", "search", '{"q": 1}')],
        ),
        message(
            block("tool_use", "a", "search", {"q": 1}),
            invalid=[{"id": "a", "name": "search", "args": '{"q": 1}', "error": None}],
        ),
    ],
    ids=[
        "valid",
        "invalid",
        "Anthropic",
        "Anthropic as text",
        "standard",
        "Responses",
        "partial",
        "Chat Completions",
        "everywhere",
        "invalid and in a block",
    ],
)
def test_a_call_is_found_once_wherever_it_is(turn: AIMessage) -> None:
    assert calls_of(turn) == [SEARCH]


def test_calls_with_the_same_id_are_as_many_as_the_place_with_the_most_of_them() -> None:
    twice = [block("tool_use", "a", "search", {"q": number}) for number in (1, 2)]
    assert calls_of(message(*twice, calls=[VALID])) == [SEARCH, MessageCall("a", "search", {"q": 2})]
    assert calls_of(message(*twice, calls=[VALID], additional=[raw("a", "x", "{}")] * 3)) == [
        SEARCH,
        MessageCall("a", "search", {"q": 2}),
        MessageCall("a", "x", {}),
    ]


@pytest.mark.parametrize("given", ["", None, "{", "[1]", 7, "[" * 100_000])
def test_arguments_that_are_no_object_are_none(given: Any) -> None:
    assert calls_of(message(block("tool_use", "a", "search", given))) == [MessageCall("a", "search", {})]
    assert calls_of(message(additional=[raw("a", "search", given)])) == [MessageCall("a", "search", {})]


def test_what_is_missing_is_empty_and_what_is_no_call_is_passed_over() -> None:
    assert calls_of(message({"type": "tool_use"}, {"type": "text", "text": "tool_use"}, {"id": "a"})) == [
        MessageCall("", "unknown_tool", {})
    ]
    assert calls_of(message(additional=[{"function": {}}, {"id": "a"}, {"id": "a", "function": "f"}, "a"])) == [
        MessageCall("", "unknown_tool", {})
    ]
    assert calls_of(message(additional="a")) == []
    assert calls_of(message(additional={"id": "a", "function": {}})) == []
    nameless: list[Any] = [{"id": None, "name": None, "args": None, "error": None}]
    assert calls_of(message(invalid=nameless)) == [MessageCall("", "unknown_tool", {})]
    assert calls_of(message(calls=[{**VALID, "id": None}])) == [MessageCall("", "search", {"q": 1})]


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("functions.search", "functions_search"),
        ("Get-Pods_2", "Get-Pods_2"),
        ("größe ", "gr__e_"),
        ("n" * 64, "n" * 64),
        ("n" * 65, "n" * 64),
    ],
)
def test_a_name_is_one_that_providers_accept(name: str, valid: str) -> None:
    assert [call.name for call in calls_of(message(calls=[{**VALID, "name": name}]))] == [valid]


def test_other_calls_replace_those_of_every_place_and_nothing_else_changes() -> None:
    turn = message(
        "words",
        {"type": "text", "text": "more"},
        {**block("tool_use", "a", "search", {"q": 1}), "partial_json": "{"},
        block("function_call", "a", "search", '{"q": 2}'),
        block("tool_call", "c", "search", {}),
        calls=[VALID, {**VALID, "args": {"q": 2}}],
        additional=[raw("a", "search", "{}"), raw("a", "search", "{}"), raw("d", "search", "{}"), "strange"],
    )
    turn.id = "m"
    before = [SEARCH, MessageCall("a", "search", {"q": 2})]
    after = [MessageCall("x", "find", {"q": "ä"}), MessageCall("y", "look", {"q": 4})]

    changed = with_calls(turn, before, after)

    assert (changed.id, changed.invalid_tool_calls) == ("m", [])
    assert changed.tool_calls == [
        {"type": "tool_call", "id": "x", "name": "find", "args": {"q": "ä"}},
        {"type": "tool_call", "id": "y", "name": "look", "args": {"q": 4}},
    ]
    assert changed.content == [
        "words",
        {"type": "text", "text": "more"},
        {"type": "tool_use", "id": "x", "name": "find", "input": {"q": "ä"}, "kept": "as it is"},
        {"type": "function_call", "call_id": "y", "name": "look", "arguments": '{"q": 4}', "kept": "as it is"},
        block("tool_call", "c", "search", {}),
    ]
    assert changed.additional_kwargs["other"] == 1
    first, second, third, strange = changed.additional_kwargs["tool_calls"]
    assert first == raw("x", "find", '{"q": "\\u00e4"}')
    assert second == raw("y", "look", '{"q": 4}')
    assert (third, strange) == (raw("d", "search", "{}"), "strange")
    assert turn.tool_calls[0] == VALID


def test_arguments_as_text_keep_their_letters() -> None:
    turn = message(block("function_call", "a", "search", "{}"), calls=[VALID])
    [changed] = with_calls(turn, [SEARCH], [MessageCall("b", "search", {"q": "ä"})]).content
    assert isinstance(changed, dict)
    assert changed["arguments"] == '{"q": "ä"}'


def test_copies_without_an_id_or_a_function_are_replaced_too() -> None:
    unknown = MessageCall("", "unknown_tool", {})
    turn = message({"type": "tool_use"}, additional=[{"function": None}, {"id": None}])
    changed = with_calls(turn, [unknown, unknown], [MessageCall("x", "find", {}), MessageCall("y", "look", {})])
    assert changed.content == [{"type": "tool_use", "id": "x", "name": "find", "input": {}}]
    assert changed.additional_kwargs["tool_calls"] == [
        {"id": "x", "function": {"name": "find", "arguments": "{}"}},
        {"id": "y", "function": {"name": "look", "arguments": "{}"}},
    ]


def test_a_message_that_has_the_calls_already_is_the_same_one() -> None:
    turn = message("words", calls=[VALID])
    assert with_calls(turn, [SEARCH], [SEARCH]) is turn
    nameless = message(calls=[{**VALID, "id": None}])
    assert (
        with_calls(nameless, [MessageCall("", "search", {"q": 1})], [MessageCall("", "search", {"q": 1})]) is nameless
    )


def test_a_call_that_could_not_be_read_becomes_one_that_can() -> None:
    turn = message(calls=[VALID], invalid=[{"id": "b", "name": "search", "args": "{", "error": None}])
    turn.content = "words"
    both = [SEARCH, MessageCall("b", "search", {})]
    changed = with_calls(turn, both, both)
    assert [call["id"] for call in changed.tool_calls] == ["a", "b"]
    assert (changed.content, changed.invalid_tool_calls, changed.additional_kwargs) == ("words", [], {})
    with_one = message(invalid=[{"id": "a", "name": "search", "args": "{", "error": None}])
    assert with_calls(with_one, [MessageCall("a", "search")], [MessageCall("a", "search")]).invalid_tool_calls == []


def test_each_call_needs_another_in_its_place() -> None:
    turn = message(block("tool_use", "a", "search", {}))
    with pytest.raises(ValueError, match="zip"):
        with_calls(turn, [SEARCH], [SEARCH, SEARCH])
