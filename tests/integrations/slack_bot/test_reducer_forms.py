"""Forms in a thread: shown below what was said, answered in any order, and closed when the run is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ai_platform_engineering.events import Canceled, Failed, Form, FormField, InputRequired
from ai_platform_engineering.integrations.slack_bot.thread_view.operation_builder import operation_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    AppendStream,
    Delivered,
    PostForm,
    PostMessage,
    StartStream,
    UpdateForm,
    UpdateMessage,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import (
    CLOSED_NOTE,
    FormInvalid,
    ReplyReceived,
    RunResumed,
    StopRequested,
    reduce,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.state import State, ThreadReply
from tests.integrations.slack_bot.scenes import Scene, answer_to, answers, begins, form, plan, reports, says, writes
from tests.integrations.slack_bot.thread_model import Shown

NAME, COLOUR = form("name"), form("colour")
IN_WORDS = ThreadReply("m9", "T1", "U1", text="demo", note="Answered in the thread.")


def forms(scene: Scene) -> list[Shown]:
    return [shown for shown in scene.model.messages if shown.form is not None]


def notes(scene: Scene) -> list[tuple[str, str | None]]:
    return [(shown.form.form_id, shown.note) for shown in forms(scene)]  # type: ignore[attr-defined]


def wrongly(asked: Form, value: str) -> Form:
    """That form, with something in it that does not fit."""
    field = replace(asked.fields[0], value=value, error=f"[{value}] does not fit.")
    return replace(asked, fields=(field, *asked.fields[1:]))


def fill_in(scene: Scene, with_errors: Form) -> None:
    scene.driver.feed(FormInvalid(with_errors))
    scene.driver.wait(5.0)


def asked(*wanted: object, fate: object = None) -> Scene:
    scene = Scene(fate or (lambda _: "done"))  # type: ignore[arg-type]
    scene.hear(*says("m1", "I need something."), InputRequired(wanted))  # type: ignore[arg-type]
    return scene


def test_a_form_stands_below_what_was_said_before_it() -> None:
    scene = asked(NAME)
    said, shown = scene.model.messages
    assert (said.text, said.streaming, said.footer) == ("I need something.", False, None)
    assert (shown.form, shown.note) == (NAME, None)
    assert is_done(scene.driver.state)


def test_a_form_waits_until_all_text_before_it_has_arrived() -> None:
    scene = Scene(lambda operation: "later" if isinstance(operation, AppendStream) else "done")
    scene.hear(writes("m1", "I need "), then=0.2)
    scene.hear(writes("m1", "something."), InputRequired((NAME,)), then=0.0)
    scene.driver.finish()
    kinds = [type(operation) for operation in scene.driver.operations]
    assert kinds[-1] is PostForm
    assert scene.text.strip() == "I need something."


def test_several_forms_are_shown_each_and_answered_in_any_order() -> None:
    scene = asked(NAME, COLOUR)
    assert notes(scene) == [("name", None), ("colour", None)]
    scene.answer(answer_to("colour"))
    assert notes(scene) == [("name", None), ("colour", "colour is in.")]
    scene.go_on()
    scene.hear(InputRequired((NAME,)))
    assert notes(scene) == [("name", None), ("colour", "colour is in.")]
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.hear(*answers("m2", "Made it."))
    scene.driver.finish()
    assert notes(scene) == [("name", "name is in."), ("colour", "colour is in.")]
    assert scene.paragraphs[0] == "I need something."
    assert scene.paragraphs[-1] == "Made it."
    assert len(scene.done(PostForm)) == 2


def test_a_form_answered_while_the_run_works_on_another_is_said_when_it_waits_again() -> None:
    scene = asked(NAME, COLOUR)
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.answer(answer_to("colour"))
    assert [reply.form_id for reply in scene.driver.state.queued_replies] == ["colour"]
    scene.hear(InputRequired((COLOUR,)))
    assert notes(scene) == [("name", "name is in."), ("colour", "colour is in.")]
    scene.go_on()
    assert scene.driver.state.current_reply == answer_to("colour")
    assert scene.driver.state.queued_replies == ()
    assert len(scene.done(PostForm)) == 2


def test_words_answer_whatever_is_open() -> None:
    scene = asked(NAME, COLOUR)
    scene.answer(IN_WORDS)
    assert notes(scene) == [("name", IN_WORDS.note), ("colour", IN_WORDS.note)]
    scene.go_on()
    assert scene.driver.state.current_reply == IN_WORDS


def test_a_form_that_comes_back_is_shown_again_below() -> None:
    scene = asked(NAME)
    scene.answer(answer_to("name"))
    scene.go_on()
    with_errors = replace(NAME, fields=(FormField("name", error="too short"),))
    scene.hear(*says("m2", "That name is too short."), InputRequired((with_errors,)))
    assert notes(scene) == [("name", "name is in."), ("name", None)]
    assert scene.model.messages[-1].form == with_errors
    assert scene.model.messages[-2].text == "That name is too short."


def test_an_open_form_that_has_changed_is_changed_where_it_is() -> None:
    scene = asked(NAME, COLOUR)
    scene.answer(answer_to("colour"))
    scene.go_on()
    wider = replace(NAME, title="Another title")
    scene.hear(InputRequired((wider,)))
    assert [shown.form for shown in forms(scene)] == [wider, COLOUR]
    assert len(scene.done(PostForm)) == 2


def test_a_form_that_is_not_asked_for_any_more_is_closed() -> None:
    scene = asked(NAME, COLOUR)
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.hear(InputRequired((form("size"),)))
    assert notes(scene) == [("name", "name is in."), ("colour", CLOSED_NOTE), ("size", None)]


@pytest.mark.parametrize(
    "ending", [*answers("m2", "Done.")[-1:], Failed("x", "It broke."), Canceled()], ids=["answer", "failure", "stop"]
)
def test_open_forms_are_closed_at_the_end(ending: object) -> None:
    scene = asked(NAME, COLOUR)
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.hear(ending)  # type: ignore[arg-type]
    scene.driver.finish()
    assert notes(scene) == [("name", "name is in."), ("colour", CLOSED_NOTE)]


def test_a_run_that_is_stopped_while_it_waits_closes_its_forms() -> None:
    scene = Scene()
    scene.hear(plan(("Ask", "github", "in_progress")), begins("github", "c1", "s0"), InputRequired((NAME,)))
    scene.driver.feed(StopRequested("U7"))
    scene.driver.feed(Canceled())
    scene.driver.finish()
    assert notes(scene) == [("name", CLOSED_NOTE)]
    assert scene.paragraphs == ["_Stopped by <@U7>._"]
    assert scene.statuses == {"[Github] Ask": "pending"}


def test_the_text_goes_on_below_the_form_and_the_plan_where_it_was() -> None:
    scene = Scene()
    scene.hear(*says("m1", "I need something."), plan(("Ask", "github", "in_progress")), begins("github", "c1", "s0"))
    scene.hear(InputRequired((NAME,)))
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.hear(reports("github", "c1", "s0"), plan(("Ask", "github", "completed")), *answers("m2", "Made it."))
    scene.driver.finish()
    first, shown, last = scene.model.messages
    assert [card.status for card in first.cards.values()] == ["complete"]
    assert shown.form == NAME
    assert (last.text, last.cards) == ("Made it.", {})
    assert len(scene.done(StartStream)) == 1


def test_a_form_that_was_filled_in_wrongly_says_so_until_it_is_answered() -> None:
    with_errors, still_wrong = wrongly(NAME, "in slack"), wrongly(NAME, "in: slack")
    scene = asked(NAME, COLOUR)
    fill_in(scene, with_errors)
    assert [shown.form for shown in forms(scene)] == [with_errors, COLOUR]
    fill_in(scene, still_wrong)
    assert [shown.form for shown in forms(scene)] == [still_wrong, COLOUR]
    assert [asked.form for asked in scene.driver.state.forms] == [NAME, COLOUR], "what was typed is no proposal"
    scene.answer(answer_to("name"))
    assert notes(scene) == [("name", "name is in."), ("colour", None)]
    fill_in(scene, with_errors)
    assert notes(scene) == [("name", "name is in."), ("colour", None)], "another person was faster"
    assert is_done(scene.driver.state)


def test_what_was_typed_while_the_form_was_being_changed_is_shown_after_it() -> None:
    scene = asked(NAME)
    first, second = wrongly(NAME, "one"), wrongly(NAME, "two")
    state, (operation,) = reduce(scene.driver.state, FormInvalid(first), scene.model.now)
    state, nothing = reduce(state, FormInvalid(second), scene.model.now)
    assert nothing == []
    assert isinstance(operation, UpdateForm)
    assert operation_of(state, state.pending) == operation  # type: ignore[arg-type]
    _, (next_one,) = reduce(state, Delivered(operation.number), scene.model.now)
    assert isinstance(next_one, UpdateForm)
    assert (operation.form, next_one.form) == (first, second)


def test_while_people_are_asked_nothing_is_under_way_and_then_it_goes_on() -> None:
    scene = Scene()
    scene.hear(plan(("Ask", "github", "in_progress"), ("Tell", "", "pending")), begins("github", "c1", "s0"))
    scene.hear(InputRequired((NAME,)), then=60.0)
    assert scene.statuses == {"Waiting for an answer: [Github] Ask": "pending", "Tell": "pending"}
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.driver.wait(10.0)
    assert scene.statuses == {"[Github] Ask": "in_progress", "Tell": "pending"}


def test_a_form_that_slack_refuses_is_asked_in_words() -> None:
    scene = asked(NAME, fate=lambda operation: "bad_blocks" if isinstance(operation, PostForm) else "done")
    assert "Form name" in scene.model.messages[-1].text
    assert len(scene.done(PostForm)) == 1
    scene.answer(IN_WORDS)
    scene.go_on()
    scene.hear(*answers("m2", "Made it."))
    scene.driver.finish()
    assert scene.model.messages[-1].text == "Made it."
    assert scene.done(UpdateForm) == []


def test_a_form_whose_message_was_deleted_is_left_alone() -> None:
    scene = asked(NAME)
    scene.model.messages.pop()
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.hear(*answers("m2", "Made it."))
    scene.driver.finish()
    assert is_done(scene.driver.state)
    assert scene.paragraphs == ["I need something.", "Made it."]


@pytest.mark.parametrize("fate", ["lost", "dropped", "later"])
def test_that_a_form_is_answered_is_shown_although_it_fails_at_first(fate: str) -> None:
    fates = iter([fate])
    scene = asked(NAME, fate=lambda operation: next(fates, "done") if isinstance(operation, UpdateForm) else "done")
    scene.answer(answer_to("name"))
    scene.driver.wait(10.0)
    assert notes(scene) == [("name", "name is in.")]


@pytest.mark.parametrize("can_stream", [True, False])
def test_words_said_while_the_last_text_is_on_its_way_do_not_make_it_be_told_twice(can_stream: bool) -> None:
    scene = Scene(state=State(task_id="task", begun=1_000_000.0, can_stream=can_stream))
    scene.hear(writes("m1", "I need "), then=2.0)
    scene.driver.feed(writes("m1", "something.\n"))
    assert isinstance(scene.driver.operations[-1], AppendStream if can_stream else UpdateMessage)
    # Its delivery is not reported yet.
    for item in (InputRequired((NAME,)), ReplyReceived(IN_WORDS), RunResumed()):
        scene.driver.feed(item)
    scene.driver.settle()
    scene.hear(*answers("m2", "Made it."))
    scene.driver.finish()
    assert [part.strip() for part in scene.paragraphs] == ["I need something.", "Made it."]


def test_where_the_bot_was_not_asked_a_question_of_its_own_is_shown_and_closed_again() -> None:
    scene = Scene(state=State(task_id="task", quiet=True, begun=1_000_000.0))
    scene.hear(*says("m1", "I need something."), then=20.0)
    assert scene.model.messages == []
    scene.hear(InputRequired((NAME,)))
    assert notes(scene) == [("name", None)]
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.driver.wait(1.0)
    assert notes(scene) == [("name", "name is in.")]
    scene.hear(Failed("x", "It broke."))
    scene.driver.finish()
    assert scene.paragraphs[-1] == "⚠️ It broke."


def test_a_message_is_never_empty() -> None:
    scene = Scene()
    scene.hear(InputRequired((NAME,)))
    scene.answer(answer_to("name"))
    scene.go_on()
    scene.hear(*says("m1", " \n"), InputRequired((COLOUR,)))
    scene.driver.finish()
    assert [shown.form for shown in scene.model.messages] == [NAME, COLOUR]
    assert scene.done(PostMessage) == scene.done(StartStream) == []
