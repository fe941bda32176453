"""Which messages a compaction keeps, and that every provider accepts the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph.message import add_messages

from ai_platform_engineering.graphs.compaction import (
    Split,
    shortened,
    split,
    state_update,
    summarised,
    transcript,
)
from ai_platform_engineering.graphs.history import call_groups, valid_history
from ai_platform_engineering.graphs.long_results import part
from ai_platform_engineering.llm.context_window import message_chars
from ai_platform_engineering.utils.summaries import summary_details
from tests.graphs.strict_provider import strict_provider
from tests.graphs.test_history import PROVIDERS, TOOL, messages, model_of

LOG = "line of a log\n" * 200


def numbered(history: Sequence[AnyMessage]) -> list[AnyMessage]:
    """As in a stored conversation: every message has an id."""
    return [message.model_copy(update={"id": f"m{number}"}) for number, message in enumerate(history)]


def compacted(history: Sequence[AnyMessage], budget: float) -> list[AnyMessage]:
    parts = split(history, message_chars, budget)
    kept, _ = shortened(parts.kept, message_chars, 1_000, {}, last_step=True)
    return summarised(Split(parts.older, tuple(kept), parts.before), "S") if parts.older else kept


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with strict_provider() as address:
        yield address


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_accepts_a_compacted_history(provider: str, address: str) -> None:
    model = model_of(provider, address).bind_tools([TOOL])

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(messages, st.integers(0, 300))
    def accepts(history: list[AnyMessage], budget: int) -> None:
        short = compacted(numbered(history), budget)
        assert model.invoke([SystemMessage("You help."), *valid_history(short)]).text == "ok"

    accepts()


@settings(max_examples=200, deadline=None)
@given(messages, st.integers(0, 300))
def test_a_valid_history_stays_valid_and_the_stored_one_becomes_the_same(
    history: list[AnyMessage], budget: int
) -> None:
    before = numbered(valid_history(history))
    assert valid_history(before) is before
    after = compacted(before, budget)
    assert valid_history(after) is after, "nothing needs a repair, so no call was separated from its results"
    assert add_messages(before, state_update(before, after)) == after  # type: ignore[arg-type]
    assert compacted(after, budget)[-1] == after[-1]


@settings(max_examples=200, deadline=None)
@given(messages, st.integers(0, 300))
def test_calls_without_a_result_and_the_current_turn_are_kept(history: list[AnyMessage], budget: int) -> None:
    before = numbered(history)
    after = {message.id for message in split(before, message_chars, budget).kept}
    for turn, results, is_complete in call_groups(before):
        if not is_complete:
            assert {turn.id, *(result.id for result in results)} <= after
    last = max((place for place, message in enumerate(before) if isinstance(message, HumanMessage)), default=-1)
    owned = {result.id for _, results, _ in call_groups(before[:last]) for result in results}
    late = {result.id for turn, results, _ in call_groups(before) if turn in before[:last] for result in results}
    assert {message.id for message in before[last:]} - late - owned <= after


def turn_of(number: int, result: str = "found") -> list[AnyMessage]:
    calls = [{"id": f"c{number}", "name": "search", "args": {"q": number}}]
    return [
        HumanMessage(f"question {number}", id=f"q{number}"),
        AIMessage("", tool_calls=calls, id=f"a{number}"),
        ToolMessage(result, name="search", tool_call_id=f"c{number}", id=f"t{number}"),
        AIMessage(f"answer {number}", id=f"e{number}"),
    ]


def conversation(turns: int) -> list[AnyMessage]:
    return [*(message for number in range(turns) for message in turn_of(number)), HumanMessage("now", id="now")]


@pytest.mark.parametrize(("budget", "kept"), [(0, 0), (400, 1), (10_000, 3)])
def test_at_most_three_turns_that_fit_are_kept_whole(budget: int, kept: int) -> None:
    parts = split(conversation(6), message_chars, budget)
    assert parts.turns == 6 - kept
    assert [message.id for message in parts.kept] == [
        *(f"{kind}{number}" for number in range(6 - kept, 6) for kind in "qate"),
        "now",
    ]


def test_a_later_summary_includes_the_one_before_it() -> None:
    first = summarised(split(conversation(3), message_chars, 0), "one")
    longer = [*first, AIMessage("a"), *conversation(2)]
    second = split(longer, message_chars, 0)
    assert second.older[0] is first[0]
    assert transcript(second.older, 10_000).startswith("Summary of what came before: one\n\nPerson: now")
    summary, *others = summarised(second, "two")
    details = summary_details(summary)
    assert details is not None
    assert (details["turns"], details["text"], details["questions"][:2]) == (6, "two", ["question 0", "question 1"])
    assert not any(summary_details(message) for message in others)
    dropped = str(summarised(second, None)[0].text)
    assert "6 turns" in dropped
    assert "Before that:\none" in dropped


def test_a_summary_alone_is_not_summarised_again() -> None:
    first = summarised(split(conversation(3), message_chars, 0), "one")
    assert split(first, message_chars, 0) == Split((), tuple(first))


def test_a_transcript_cuts_long_messages_only() -> None:
    text = transcript(conversation(1)[:2] + turn_of(1, LOG), 600)
    assert "Person: question 0" in text
    assert 'Assistant calls search: {"q": 1}' in text
    assert len(text) < 700
    assert "…" in text
    many = transcript(conversation(100), 600)
    assert len(many) == 600
    assert many.endswith("now")


def test_the_oldest_results_of_the_current_turn_are_shortened_first() -> None:
    shown = part(LOG + LOG, "stored", 0, len(LOG))
    steps = [message for number, text in enumerate([shown, LOG, LOG, LOG]) for message in turn_of(number, text)[1:3]]
    before: list[AnyMessage] = [HumanMessage("q", id="q"), *steps]
    after, stored = shortened(before, message_chars, 4_000, {"stored": LOG + LOG})
    lengths = [len(str(message.text)) for message in after if isinstance(message, ToolMessage)]
    assert [length < 700 for length in lengths] == [True, True, False, False]
    assert 'read_result(result_id="stored", offset=500)' in str(after[2].text), "it has its id already"
    assert [*stored.values()] == [LOG]
    assert f'result_id="{next(iter(stored))}"' in str(after[4].text)
    everything, _ = shortened(before, message_chars, 1e9, {})
    assert everything[-1] is before[-1], "the last step is what the model reads now"
    everything, _ = shortened(before, message_chars, 1e9, {}, last_step=True)
    assert all(message_chars(later) < 1_000 for _, later in pairwise(everything))
