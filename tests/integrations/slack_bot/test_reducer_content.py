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
from ai_platform_engineering.final_results import NOTHING_TO_SAY
from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.thread_view.cards import Cards
from ai_platform_engineering.integrations.slack_bot.thread_view.content import (
    Content,
    SupervisorMessage,
    apply_event,
    files_of,
    raw_text,
    resume,
    text_of,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card, File
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import (
    CLOSED_NOTE,
    FormInvalid,
    Input,
    ReplyReceived,
    RunAccepted,
    RunResumed,
    StopRequested,
    Tick,
    next_tick,
    reduce,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    OpenForm,
    PendingOperation,
    ShownMessage,
    State,
    ThreadReply,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import StreamBuffer, WritePace
from tests.integrations.slack_bot.scenes import answer_to, begins, form, plan, reports, says, works, writes

NOW = 1_000.0
FILE = File("a.py", "a.py", "print(1)")
EMPTY = Content()
NAME, COLOUR = form("name"), form("colour")


def after(*events: Event, content: Content = EMPTY, stopped_by: str = "") -> Content:
    for event in events:
        content = apply_event(content, event, stopped_by)
    return content


def spoken(content: Content) -> list[tuple[str, str, bool]]:
    return [(message.message_id, message.text, message.ended) for message in content.messages]


def test_only_the_supervisors_own_messages_are_told() -> None:
    others = (TextDelta("argocd", "m1", "Mine"), TextDelta(SUPERVISOR, "m1", "Inner", parent_call_id="c1"))
    assert after(*others) == Content()
    inner_end = MessageEnded(SUPERVISOR, "m1", parent_call_id="c1")
    content = after(writes("m1", "One "), inner_end, writes("m1", "two"), *says("m2", "Three"))
    assert spoken(content) == [("m1", "One two", False), ("m2", "Three", True)]
    assert raw_text(content) == "One two"
    content = after(MessageEnded(SUPERVISOR, "m1"), content=content)
    assert raw_text(content) == "One two\n\nThree"


def test_silence_and_blanks_are_not_told() -> None:
    content = after(*says("m1", "One"), *says("m2", NOTHING_TO_SAY), *says("m3", " \n"), *says("m4", "Two"))
    assert raw_text(content) == "One\n\nTwo"


HELD = (SupervisorMessage("m1", "The report.", ended=True),)


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
    event: Event, held: tuple[SupervisorMessage, ...], shown: tuple[SupervisorMessage, ...], holding: bool
) -> None:
    content = after(*works("argocd"), *says("m1", "The report."))
    assert (content.held, content.messages, content.holding) == (HELD, (), True)
    content = after(event, content=content)
    assert (content.held, content.messages, content.holding) == (held, shown, holding)


def test_a_plan_in_which_no_other_step_begins_leaves_text_held() -> None:
    step = plan(("Look", "", "in_progress"))
    content = after(step, *works("argocd"), writes("m1", "The "), writes("m1", "report."), step)
    assert content.held == (SupervisorMessage("m1", "The report."),)


def test_a_message_that_began_before_a_report_goes_on_where_it_is() -> None:
    content = after(begins("argocd"), writes("m1", "While "), reports("argocd"), writes("m1", "it runs"))
    assert spoken(content) == [("m1", "While it runs", False)]
    assert content.held == ()


def test_a_message_that_was_cut_off_is_written_again_below_a_notice() -> None:
    again = TextDelta(SUPERVISOR, "m2", "One two", supersedes="m1")
    assert spoken(after(writes("m1", "One t"), again)) == [
        ("m1", "One t", True),
        ("m1:cut-off", words.CUT_OFF, True),
        ("m2", "One two", False),
    ]
    unseen = after(*works("argocd"), writes("m0", "Kept"), writes("m1", "One t"), again)
    assert unseen.held == (SupervisorMessage("m0", "Kept"), SupervisorMessage("m2", "One two"))
    assert unseen.messages == ()


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
    content = after(*(writes(*message) for message in said), FinalResult(answer, "m9"))
    assert spoken(content) == expected
    assert (content.outcome, content.answer_id, content.closing) == ("answered", "m9", "")


def test_an_answer_takes_the_place_of_what_was_held() -> None:
    content = after(*works("argocd"), *says("m1", "The report."), FinalResult("It is 3.1.", "m2"))
    assert content == replace(
        after(*works("argocd")),
        messages=(SupervisorMessage("m2", "It is 3.1.", ended=True),),
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
    content = after(*before, Failed("x", "It broke.", partial))
    assert spoken(content) == expected
    assert (content.outcome, content.closing) == ("failed", "⚠️ It broke.")


def test_what_was_held_is_told_when_the_run_ends_without_an_answer() -> None:
    held = after(*works("argocd"), writes("m1", "The report."))
    ended = (SupervisorMessage("m1", "The report.", ended=True),)
    for ending in (Failed("x", "It broke."), Canceled(), InputRequired((NAME,))):
        content = after(ending, content=held)
        assert (content.held, content.messages, content.holding) == ((), ended, False)
    assert after(Canceled(), content=held, stopped_by="U7").closing == "_Stopped by <@U7>._"
    asked = after(InputRequired((NAME,)), content=held)
    assert (asked.outcome, asked.closing, asked.cards.waiting) == ("asked", "", True)


def test_the_plan_stands_below_what_was_said_before_it() -> None:
    first = after(*says("m1", "Let me look."), plan(("Look", "argocd", "in_progress")))
    assert first.plan_offset == len("Let me look.")
    assert after(*says("m2", "More."), begins("jira"), content=first).plan_offset == first.plan_offset
    assert after(*says("m1", "Let me look.")).plan_offset == 0


def test_after_an_answer_what_was_told_stays_and_the_rest_begins_anew() -> None:
    cards = Cards("The plan", (Card("step:s0", "Look", "in_progress"),), waiting=True)
    asked = Content(
        previous_text="Before.",
        previous_files=(FILE,),
        messages=(SupervisorMessage("m1", "I need something.", ended=True),),
        cards=cards,
        plan_offset=7,
        outcome="asked",
        answer_id="m0",
        closing="_Wait._",
        inline_files=(replace(FILE, content="a ```` b"),),
    )
    text = "Before.\n\nI need something.\n\n_Wait._\n\n**a.py**\n`````\na ```` b\n`````"
    assert text_of(asked) == text
    assert files_of(asked) == (FILE,)
    assert resume(asked) == Content(
        previous_text=text, previous_files=(FILE,), cards=replace(cards, waiting=False), plan_offset=7, answer_id="m0"
    )
    assert text_of(Content(inline_files=(FILE,))) == "**a.py**\n```\nprint(1)\n```"


def known(item: Input, state: State, now: float = NOW) -> State:
    """What is known after `item`, while something else is under way."""
    return reduce(replace(state, pending=PendingOperation(3, "status")), item, now)[0]


BASE = State(task_id="task", trace_id="trace", status="is working", stop_button_rejected=True)


@pytest.mark.parametrize(
    ("item", "change"),
    [
        (RunAccepted("t2", "tr2"), {"task_id": "t2", "trace_id": "tr2"}),
        (RunAccepted("", ""), {}),
        (Tick(WritePace(3.0, 4.0)), {"pace": WritePace(3.0, 4.0)}),
        (StopRequested("U7"), {"stopped_by": "U7"}),
    ],
)
def test_what_happens_to_the_run_is_known(item: Input, change: dict[str, Any]) -> None:
    assert replace(known(item, BASE), pending=None) == replace(BASE, **change)


def test_the_buffer_grows_with_what_is_said_and_is_taken_with_what_goes_out() -> None:
    held = known(writes("m1", "One"), BASE)
    assert held.buffer == StreamBuffer(length=3, since=NOW)
    held = known(writes("m1", "\nTwo"), held, NOW + 1.0)
    assert held.buffer == StreamBuffer(length=7, line=True, since=NOW)
    sent, (operation,) = reduce(replace(held, pending=None), Tick(), NOW + 2.0)
    assert sent.buffer == StreamBuffer(length=7, sent=7, since=NOW, flushed=NOW + 2.0)
    assert sent.pending is not None
    assert operation.number == sent.last_number == sent.pending.number == 1
    # A sign of life is no text.
    signed, _ = reduce(replace(held, pending=None, status=""), Tick(), NOW + 2.0)
    assert signed.buffer == held.buffer


def test_a_tick_is_needed_when_something_is_due() -> None:
    waiting = replace(BASE, stop_button_rejected=False, begun=NOW - 1.0)
    assert next_tick(waiting, NOW) == NOW + 3.0
    assert next_tick(waiting, NOW + 5.0) == NOW + 5.0
    assert next_tick(BASE, NOW) is None


ASKED = replace(
    BASE,
    forms=(OpenForm(NAME, "2.0", NAME), OpenForm(COLOUR, "3.0", COLOUR, with_errors=form("colour", title="Wrong"))),
    queued_replies=(answer_to("size"),),
    current_reply=answer_to("name"),
)
IN_WORDS = ThreadReply("m9", "T1", "U1", text="demo", note="Said.")


def note_shown(state: State) -> list[tuple[str | None, bool]]:
    """The note of each form, and whether it shows what is wrong with it."""
    return [(shown.note, shown.with_errors is not None) for shown in state.forms]


def test_an_answer_closes_its_form_and_words_close_all() -> None:
    one = known(ReplyReceived(answer_to("colour")), ASKED)
    assert note_shown(one) == [(None, False), ("colour is in.", False)]
    assert one.queued_replies == (answer_to("size"), answer_to("colour"))
    every = known(ReplyReceived(IN_WORDS), one)
    assert note_shown(every) == [("Said.", False), ("colour is in.", False)]


def test_a_form_that_is_filled_in_wrongly_shows_it_while_it_is_open() -> None:
    with_errors = form("name", title="Wrong")
    assert note_shown(known(FormInvalid(with_errors), ASKED)) == [(None, True), (None, True)]
    closed = known(ReplyReceived(answer_to("name")), ASKED)
    assert known(FormInvalid(with_errors), closed) == closed


def test_the_end_closes_forms_and_forgets_what_was_said() -> None:
    ended = known(Canceled(), ASKED)
    assert note_shown(ended) == [(CLOSED_NOTE, False), (CLOSED_NOTE, False)]
    assert (ended.current_reply, ended.queued_replies) == (None, ())
    under_way = known(writes("m1", "One"), ASKED)
    assert (under_way.forms, under_way.current_reply, under_way.queued_replies) == (
        ASKED.forms,
        ASKED.current_reply,
        ASKED.queued_replies,
    )


def test_a_question_keeps_forms_that_are_open_and_shows_those_that_came_back() -> None:
    again = known(InputRequired((NAME, form("size"), form("kind"))), ASKED)
    # The answer to `size` has not been heard yet.
    assert [shown.form.form_id for shown in again.forms] == ["name", "colour", "kind"]
    assert again.forms[0] is ASKED.forms[0]
    assert again.forms[2] == OpenForm(form("kind"))
    assert note_shown(again) == [(None, False), (CLOSED_NOTE, True), (None, False)]
    assert (again.current_reply, again.queued_replies) == (None, ASKED.queued_replies)
    changed = form("colour", title="Which one?")
    other = known(InputRequired((changed,)), known(ReplyReceived(answer_to("name")), ASKED))
    assert note_shown(other) == [("name is in.", False), (None, False)]
    assert other.forms[1].form == changed
    back = known(InputRequired((NAME,)), replace(other, queued_replies=()))
    assert [shown.form.form_id for shown in back.forms] == ["name", "colour", "name"]
    assert note_shown(back) == [("name is in.", False), (CLOSED_NOTE, False), (None, False)]


def test_a_form_is_kept_without_credentials() -> None:
    secret = replace(NAME, action_requests=({"tool": "login", "args": {"password": "hunter22"}},))
    assert "hunter22" not in repr(known(InputRequired((secret,)), BASE))


def test_a_run_that_goes_on_writes_below_the_form() -> None:
    messages = (ShownMessage(0, 3, "1.0", end=2), ShownMessage(3, 5, "1.1"))
    waiting = replace(
        ASKED,
        content=after(*says("m1", "Hello"), InputRequired((NAME,))),
        messages=messages,
        queued_replies=(answer_to("name"), answer_to("size")),
        buffer=StreamBuffer(length=5, sent=5, flushed=NOW),
    )
    assert replace(known(RunResumed(), waiting), pending=None) == replace(
        waiting,
        current_reply=answer_to("name"),
        queued_replies=(answer_to("size"),),
        messages=(messages[0], replace(messages[1], end=5)),
        content=resume(waiting.content),
        begun=NOW,
        buffer=StreamBuffer(),
    )
