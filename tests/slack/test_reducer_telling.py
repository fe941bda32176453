"""What a run has to tell after each event, and what the reducer knows then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ai_platform_engineering.events import (
    SUPERVISOR,
    Canceled,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    MessageEnded,
    TextDelta,
    ToolStarted,
)
from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.thread_view.cards import Cards
from ai_platform_engineering.integrations.slack_bot.thread_view.content import (
    Speech,
    Telling,
    files_of,
    go_on,
    raw_text,
    tell,
    text_of,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card, File
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import (
    CLOSED_NOTE,
    Answered,
    Begun,
    FilledInWrongly,
    GoingOn,
    Input,
    Stopping,
    Tick,
    next_look,
    reduce,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    Message,
    OpenForm,
    PendingOperation,
    Saying,
    State,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import Pace, StreamBuffer
from ai_platform_engineering.utils.silence import NOTHING_TO_SAY
from tests.slack.scenes import answer_to, begins, form, plan, reports, says, works, writes

NOW = 1_000.0
FILE = File("a.py", "a.py", "print(1)")
TELLING = Telling()
NAME, COLOUR = form("name"), form("colour")


def after(*events: Event, telling: Telling = TELLING, stopped_by: str = "") -> Telling:
    for event in events:
        telling = tell(telling, event, stopped_by)
    return telling


def spoken(telling: Telling) -> list[tuple[str, str, bool]]:
    return [(speech.message_id, speech.text, speech.ended) for speech in telling.speeches]


def test_only_the_supervisors_own_messages_are_told() -> None:
    others = (TextDelta("argocd", "m1", "Mine"), TextDelta(SUPERVISOR, "m1", "Inner", parent_call_id="c1"))
    assert after(*others) == Telling()
    inner_end = MessageEnded(SUPERVISOR, "m1", parent_call_id="c1")
    told = after(writes("m1", "One "), inner_end, writes("m1", "two"), *says("m2", "Three"))
    assert spoken(told) == [("m1", "One two", False), ("m2", "Three", True)]
    assert raw_text(told) == "One two"
    told = after(MessageEnded(SUPERVISOR, "m1"), telling=told)
    assert raw_text(told) == "One two\n\nThree"


def test_silence_and_blanks_are_not_told() -> None:
    told = after(*says("m1", "One"), *says("m2", NOTHING_TO_SAY), *says("m3", " \n"), *says("m4", "Two"))
    assert raw_text(told) == "One\n\nTwo"


HELD = (Speech("m1", "The report.", ended=True),)


@pytest.mark.parametrize(
    ("event", "held", "shown", "holding"),
    [
        (begins("jira"), (), (), False),
        (ToolStarted(SUPERVISOR, "search", "c9"), (), HELD, False),
        (ToolStarted("argocd", "sync", "c9", "c1"), HELD, (), True),
        (plan(("Look", "", "in_progress")), (), HELD, False),
        (plan(("Look", "jira", "in_progress")), (), (), False),
        (plan(("Look", "jira", "pending")), HELD, (), True),
        (plan(("Look", "jira", "completed"), ("Tell", "", "in_progress")), (), HELD, False),
    ],
)
def test_text_after_a_report_is_shown_or_dropped_when_something_begins(
    event: Event, held: tuple[Speech, ...], shown: tuple[Speech, ...], holding: bool
) -> None:
    told = after(*works("argocd"), *says("m1", "The report."))
    assert (told.held, told.speeches, told.holding) == (HELD, (), True)
    told = after(event, telling=told)
    assert (told.held, told.speeches, told.holding) == (held, shown, holding)


def test_a_plan_in_which_no_other_step_begins_leaves_text_held() -> None:
    step = plan(("Look", "", "in_progress"))
    told = after(step, *works("argocd"), writes("m1", "The "), writes("m1", "report."), step)
    assert told.held == (Speech("m1", "The report."),)


def test_a_message_that_began_before_a_report_goes_on_where_it_is() -> None:
    told = after(begins("argocd"), writes("m1", "While "), reports("argocd"), writes("m1", "it runs"))
    assert spoken(told) == [("m1", "While it runs", False)]
    assert told.held == ()


def test_a_message_that_was_cut_off_is_written_again_below_a_notice() -> None:
    again = TextDelta(SUPERVISOR, "m2", "One two", supersedes="m1")
    assert spoken(after(writes("m1", "One t"), again)) == [
        ("m1", "One t", True),
        ("m1:cut-off", words.CUT_OFF, True),
        ("m2", "One two", False),
    ]
    unseen = after(*works("argocd"), writes("m0", "Kept"), writes("m1", "One t"), again)
    assert unseen.held == (Speech("m0", "Kept"), Speech("m2", "One two"))
    assert unseen.speeches == ()


@pytest.mark.parametrize(
    ("said", "answer", "expected"),
    [
        ([("m1", "It is")], "It is 3.1.", [("m9", "It is 3.1.", True)]),
        ([("m1", "\n It is")], "It is 3.1.", [("m9", "\n It is 3.1.", True)]),
        ([("m1", "It is")], "\nIt is 3.1.", [("m9", "It is 3.1.", True)]),
        ([("m1", "It is 3.1.\n")], "\nIt is 3.1.", [("m9", "It is 3.1.\n", True)]),
        ([("m1", "Let me look.")], "It is 3.1.", [("m1", "Let me look.", True), ("m9", "It is 3.1.", True)]),
        ([("m9", "It is"), ("m2", "It")], "It is 3.1.", [("m9", "It is 3.1.", True), ("m2", "It", True)]),
        (
            [("m1", "It"), ("m2", " ")],
            "It is 3.1.",
            [("m1", "It", True), ("m2", " ", True), ("m9", "It is 3.1.", True)],
        ),
        ([], "It is 3.1.", [("m9", "It is 3.1.", True)]),
    ],
)
def test_an_answer_completes_what_was_said_of_it(
    said: list[tuple[str, str]], answer: str, expected: list[tuple[str, str, bool]]
) -> None:
    told = after(*(writes(*speech) for speech in said), FinalResult(answer, "m9"))
    assert spoken(told) == expected
    assert (told.outcome, told.answer_id, told.closing) == ("answered", "m9", "")


def test_an_answer_takes_the_place_of_what_was_held() -> None:
    told = after(*works("argocd"), *says("m1", "The report."), FinalResult("It is 3.1.", "m2"))
    assert told == replace(
        after(*works("argocd")),
        speeches=(Speech("m2", "It is 3.1.", ended=True),),
        holding=False,
        outcome="answered",
        answer_id="m2",
    )


@pytest.mark.parametrize(
    ("said", "partial", "expected"),
    [
        ("", "Half", [("partial", "Half", True)]),
        ("Ha", "Half", [("partial", "Half", True)]),
        ("Look.", "Half", [("m1", "Look.", True), ("partial", "Half", True)]),
        ("All of Half of it", " Half ", [("m1", "All of Half of it", True)]),
        ("Look.", " ", [("m1", "Look.", True)]),
        ("Look.", None, [("m1", "Look.", True)]),
    ],
)
def test_a_failure_tells_the_part_that_was_not_told(
    said: str, partial: str | None, expected: list[tuple[str, str, bool]]
) -> None:
    before = [writes("m1", said)] if said else []
    told = after(*before, Failed("x", "It broke.", partial))
    assert spoken(told) == expected
    assert (told.outcome, told.closing) == ("failed", "⚠️ It broke.")


def test_what_was_held_is_told_when_the_run_ends_without_an_answer() -> None:
    held = after(*works("argocd"), writes("m1", "The report."))
    ended = (Speech("m1", "The report.", ended=True),)
    for ending in (Failed("x", "It broke."), Canceled(), InputRequired((NAME,))):
        told = after(ending, telling=held)
        assert (told.held, told.speeches, told.holding) == ((), ended, False)
    assert after(Canceled(), telling=held, stopped_by="U7").closing == "_Stopped by <@U7>._"
    asked = after(InputRequired((NAME,)), telling=held)
    assert (asked.outcome, asked.closing, asked.cards.waiting) == ("asked", "", True)


def test_the_plan_stands_below_what_was_said_before_it() -> None:
    first = after(*says("m1", "Let me look."), plan(("Look", "argocd", "in_progress")))
    assert first.plan_at == len("Let me look.")
    assert after(*says("m2", "More."), begins("jira"), telling=first).plan_at == first.plan_at
    assert after(*says("m1", "Let me look.")).plan_at == 0


def test_after_an_answer_what_was_told_stays_and_the_rest_begins_anew() -> None:
    cards = Cards("The plan", (Card("step:s0", "Look", "in_progress"),), waiting=True)
    asked = Telling(
        told="Before.",
        told_files=(FILE,),
        speeches=(Speech("m1", "I need something.", ended=True),),
        cards=cards,
        plan_at=7,
        outcome="asked",
        answer_id="m0",
        closing="_Wait._",
        unfiled=(replace(FILE, content="a ```` b"),),
    )
    text = "Before.\n\nI need something.\n\n_Wait._\n\n**a.py**\n`````\na ```` b\n`````"
    assert text_of(asked) == text
    assert files_of(asked) == (FILE,)
    assert go_on(asked) == Telling(
        told=text, told_files=(FILE,), cards=replace(cards, waiting=False), plan_at=7, answer_id="m0"
    )
    assert text_of(Telling(unfiled=(FILE,))) == "**a.py**\n```\nprint(1)\n```"


def known(item: Input, state: State, now: float = NOW) -> State:
    """What is known after `item`, while something else is under way."""
    return reduce(replace(state, flight=PendingOperation(3, "status")), item, now)[0]


BASE = State(task_id="task", trace_id="trace", status="is working", unstoppable=True)


@pytest.mark.parametrize(
    ("item", "change"),
    [
        (Begun("t2", "tr2"), {"task_id": "t2", "trace_id": "tr2"}),
        (Begun("", ""), {}),
        (Tick(Pace(3.0, 4.0)), {"pace": Pace(3.0, 4.0)}),
        (Stopping("U7"), {"stopped_by": "U7"}),
    ],
)
def test_what_happens_to_the_run_is_known(item: Input, change: dict[str, Any]) -> None:
    assert replace(known(item, BASE), flight=None) == replace(BASE, **change)


def test_the_buffer_grows_with_what_is_said_and_is_taken_with_what_goes_out() -> None:
    held = known(writes("m1", "One"), BASE)
    assert held.buffer == StreamBuffer(length=3, since=NOW)
    held = known(writes("m1", "\nTwo"), held, NOW + 1.0)
    assert held.buffer == StreamBuffer(length=7, line=True, since=NOW)
    sent, (operation,) = reduce(replace(held, flight=None), Tick(), NOW + 2.0)
    assert sent.buffer == StreamBuffer(length=7, sent=7, since=NOW, flushed=NOW + 2.0)
    assert sent.flight is not None
    assert operation.number == sent.numbers == sent.flight.number == 1
    # A sign of life is no text.
    signed, _ = reduce(replace(held, flight=None, status=""), Tick(), NOW + 2.0)
    assert signed.buffer == held.buffer


def test_a_tick_is_needed_when_something_is_due() -> None:
    waiting = replace(BASE, unstoppable=False, begun=NOW - 1.0)
    assert next_look(waiting, NOW) == NOW + 3.0
    assert next_look(waiting, NOW + 5.0) == NOW + 5.0
    assert next_look(BASE, NOW) is None


ASKED = replace(
    BASE,
    forms=(OpenForm(NAME, "2.0", NAME), OpenForm(COLOUR, "3.0", COLOUR, wrong=form("colour", title="Wrong"))),
    sayings=(answer_to("size"),),
    saying=answer_to("name"),
)
IN_WORDS = Saying("m9", "T1", "U1", words="demo", note="Said.")


def noted(state: State) -> list[tuple[str | None, bool]]:
    """The note of each form, and whether it shows what is wrong with it."""
    return [(shown.note, shown.wrong is not None) for shown in state.forms]


def test_an_answer_closes_its_form_and_words_close_all() -> None:
    one = known(Answered(answer_to("colour")), ASKED)
    assert noted(one) == [(None, False), ("colour is in.", False)]
    assert one.sayings == (answer_to("size"), answer_to("colour"))
    every = known(Answered(IN_WORDS), one)
    assert noted(every) == [("Said.", False), ("colour is in.", False)]


def test_a_form_that_is_filled_in_wrongly_shows_it_while_it_is_open() -> None:
    wrong = form("name", title="Wrong")
    assert noted(known(FilledInWrongly(wrong), ASKED)) == [(None, True), (None, True)]
    closed = known(Answered(answer_to("name")), ASKED)
    assert known(FilledInWrongly(wrong), closed) == closed


def test_the_end_closes_forms_and_forgets_what_was_said() -> None:
    ended = known(Canceled(), ASKED)
    assert noted(ended) == [(CLOSED_NOTE, False), (CLOSED_NOTE, False)]
    assert (ended.saying, ended.sayings) == (None, ())
    under_way = known(writes("m1", "One"), ASKED)
    assert (under_way.forms, under_way.saying, under_way.sayings) == (ASKED.forms, ASKED.saying, ASKED.sayings)


def test_a_question_keeps_forms_that_are_open_and_shows_those_that_came_back() -> None:
    again = known(InputRequired((NAME, form("size"), form("kind"))), ASKED)
    # The answer to `size` has not been heard yet.
    assert [shown.form.form_id for shown in again.forms] == ["name", "colour", "kind"]
    assert again.forms[0] is ASKED.forms[0]
    assert again.forms[2] == OpenForm(form("kind"))
    assert noted(again) == [(None, False), (CLOSED_NOTE, True), (None, False)]
    assert (again.saying, again.sayings) == (None, ASKED.sayings)
    changed = form("colour", title="Which one?")
    other = known(InputRequired((changed,)), known(Answered(answer_to("name")), ASKED))
    assert noted(other) == [("name is in.", False), (None, False)]
    assert other.forms[1].form == changed
    back = known(InputRequired((NAME,)), replace(other, sayings=()))
    assert [shown.form.form_id for shown in back.forms] == ["name", "colour", "name"]
    assert noted(back) == [("name is in.", False), (CLOSED_NOTE, False), (None, False)]


def test_a_form_is_kept_without_credentials() -> None:
    secret = replace(NAME, action_requests=({"tool": "login", "args": {"password": "hunter22"}},))
    assert "hunter22" not in repr(known(InputRequired((secret,)), BASE))


def test_a_run_that_goes_on_writes_below_the_form() -> None:
    messages = (Message(0, 3, "1.0", end=2), Message(3, 5, "1.1"))
    waiting = replace(
        ASKED,
        telling=after(*says("m1", "Hello"), InputRequired((NAME,))),
        messages=messages,
        sayings=(answer_to("name"), answer_to("size")),
        buffer=StreamBuffer(length=5, sent=5, flushed=NOW),
    )
    assert replace(known(GoingOn(), waiting), flight=None) == replace(
        waiting,
        saying=answer_to("name"),
        sayings=(answer_to("size"),),
        messages=(messages[0], replace(messages[1], end=5)),
        telling=go_on(waiting.telling),
        begun=NOW,
        buffer=StreamBuffer(),
    )
