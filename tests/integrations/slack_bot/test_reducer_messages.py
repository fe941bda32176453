"""Messages: streams that end in time, or before; what Slack refuses, and what people delete; and the button to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from ai_platform_engineering.events import (
    SUPERVISOR,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolStarted,
)
from ai_platform_engineering.final_results import NOTHING_TO_SAY
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    AppendStream,
    DeleteMessage,
    Operation,
    PostMessage,
    Rating,
    SetStatus,
    StartStream,
    Stop,
    StopStream,
    UpdateMessage,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import STREAM_SECONDS, is_done
from ai_platform_engineering.integrations.slack_bot.thread_view.reducer import ReplyReceived, RunAccepted, RunResumed
from ai_platform_engineering.integrations.slack_bot.thread_view.state import State, ThreadReply
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import WritePace
from tests.integrations.slack_bot.scenes import Scene, answers, begins, form, plan, reports, says, writes
from tests.integrations.slack_bot.thread_model import Driver, Shown, ThreadModel

BEGUN = 1_000_000.0
LONG_CODE = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(300)) + "```\n"


def only(kind: type[Operation] | tuple[type[Operation], ...], *fates: str) -> Callable[[Operation], str]:
    """The first operations of a kind meet with those fates; the rest is done."""
    left = iter(fates)
    return lambda operation: next(left, "done") if isinstance(operation, kind) else "done"


def always(kind: type[Operation], fate: str) -> Callable[[Operation], str]:
    return lambda operation: fate if isinstance(operation, kind) else "done"


def buttons(scene: Scene) -> list[Shown]:
    return [shown for shown in scene.model.messages if isinstance(shown.footer, Stop)]


def assert_delivered(scene: Scene, words: Iterable[str]) -> None:
    """Everything arrived once, in order."""
    assert "".join(scene.text.split()) == "".join("".join(words).split())
    assert not any(shown.streaming for shown in scene.model.messages)
    assert is_done(scene.driver.state)


def talk(scene: Scene, count: int, every: float, *, paragraphs: int = 5) -> list[str]:
    """A message of so many words, one after another, and the answer that it is."""
    words = [f"w{number} " + ("\n\n" if number % paragraphs == paragraphs - 1 else "") for number in range(count)]
    for word in words:
        scene.hear(writes("m1", word), then=every)
    scene.hear(MessageEnded(SUPERVISOR, "m1"), FinalResult("".join(words), "m1"))
    scene.driver.finish()
    return words


# Streams


def test_a_stream_is_left_before_slack_ends_it_and_the_next_begins_with_a_paragraph() -> None:
    scene = Scene()
    words = talk(scene, 140, 3.0)
    assert_delivered(scene, words)
    assert scene.model.longest_stream <= STREAM_SECONDS + 1
    assert len(scene.done(StartStream)) == 2
    assert len(scene.model.messages) == 2
    assert scene.model.messages[0].text.rstrip().endswith("4") or scene.model.messages[0].text.rstrip().endswith("9")
    assert isinstance(scene.model.messages[-1].footer, Rating)
    assert scene.model.messages[0].footer is None


def test_one_endless_paragraph_goes_on_in_its_message() -> None:
    scene = Scene()
    words = talk(scene, 140, 3.0, paragraphs=1_000)
    assert_delivered(scene, words)
    assert len(scene.model.messages) == 1
    assert scene.model.longest_stream <= STREAM_SECONDS + 1


def test_a_plan_without_words_outlives_its_stream() -> None:
    scene = Scene()
    scene.hear(plan(("Look", "argocd", "in_progress")), begins("argocd", "c1", "s0"), then=400.0)
    assert not scene.model.messages[0].streaming
    scene.hear(reports("argocd", "c1", "s0"), plan(("Look", "argocd", "completed")), *answers("m1", "All is well."))
    assert_delivered(scene, ["All is well."])
    assert scene.statuses == {"[Argocd] Look": "complete"}
    assert len([shown for shown in scene.model.messages if shown.cards]) == 1


def test_a_stream_that_slack_has_closed_is_completed_by_updates() -> None:
    scene = Scene(only(AppendStream, "done", "not_streaming"))
    words = talk(scene, 20, 1.0)
    assert_delivered(scene, words)
    assert len(scene.model.messages) == 1
    assert scene.done(UpdateMessage)


@pytest.mark.parametrize("fate", ["lost", "dropped", "other", "too_long", "bad_blocks", "later", "not_streaming"])
@pytest.mark.parametrize("kind", [AppendStream, StopStream, UpdateMessage, StartStream, PostMessage])
def test_whatever_becomes_of_an_operation_the_answer_is_there_once(kind: type[Operation], fate: str) -> None:
    scene = Scene(only((kind, UpdateMessage) if kind is AppendStream else kind, fate, fate))
    scene.hear(plan(("Look", "argocd", "in_progress")), *says("m0", "Let me look."), begins("argocd", "c1", "s0"))
    scene.hear(reports("argocd", "c1", "s0"), plan(("Look", "argocd", "completed")))
    scene.hear(ToolStarted(SUPERVISOR, "search", "c2"))
    words = talk(scene, 12, 1.0)
    assert_delivered(scene, ["Let me look.", *words])
    assert scene.statuses["[Argocd] Look"] == "complete"
    assert [type(shown.footer) for shown in scene.model.messages if shown.footer] == [Rating]


def test_a_stream_that_cannot_be_stopped_at_the_moment_is_completed_first() -> None:
    scene = Scene(always(StopStream, "later"))
    scene.hear(writes("m1", "It is "), then=2.0)
    scene.hear(writes("m1", "3.1."), MessageEnded(SUPERVISOR, "m1"), FinalResult("It is 3.1.", "m1"), then=1.0)
    assert scene.text == "It is 3.1."
    scene.model.fate = lambda _: "done"
    scene.driver.finish()
    assert_delivered(scene, ["It is 3.1."])
    assert isinstance(scene.model.messages[0].footer, Rating)


def test_the_next_message_does_not_wait_until_a_full_one_can_be_stopped() -> None:
    scene = Scene(always(StopStream, "later"))
    text = "\n\n".join(f"Paragraph {number} " + "x" * 300 for number in range(90))
    for start in range(0, len(text), 2_000):
        scene.hear(writes("m1", text[start : start + 2_000]), then=1.0)
    assert len(scene.text) > len(text) - 4_000
    assert len(scene.model.messages) > 2
    scene.model.fate = lambda _: "done"
    scene.hear(MessageEnded(SUPERVISOR, "m1"), FinalResult(text, "m1"))
    scene.driver.finish()
    assert_delivered(scene, [text])


def test_a_stream_that_takes_no_more_is_left_and_its_message_updated() -> None:
    scene = Scene(always(AppendStream, "other"))
    assert_delivered(scene, talk(scene, 12, 1.0))
    assert len(scene.done(AppendStream)) == 1
    assert len(scene.model.messages) == 1


def test_a_message_that_takes_no_more_changes_is_followed_by_another() -> None:
    scene = Scene(always(UpdateMessage, "other"), State(task_id="task", can_stream=False, begun=BEGUN))
    assert_delivered(scene, talk(scene, 30, 1.0))
    assert len(scene.model.messages) > 1


def test_one_refusal_after_lost_answers_doubles_nothing() -> None:
    """What people see is not known then, so that the message is written again, and not another one beside it."""
    scene = Scene(only((AppendStream, StopStream, UpdateMessage), "lost", "lost", "lost", "other"))
    scene.hear(writes("m1", "One. "))
    scene.hear(writes("m1", "Two. "), FinalResult("One. Two. ", "m1"))
    scene.driver.finish()
    assert scene.text.split() == ["One.", "Two."]


def test_a_message_that_was_not_changed_once_is_changed_then() -> None:
    scene = Scene(only(UpdateMessage, "other", "other"), State(task_id="task", can_stream=False, begun=BEGUN))
    assert_delivered(scene, talk(scene, 12, 1.0))
    assert len(scene.model.messages) == 1


@pytest.mark.parametrize("streams", [True, False])
def test_what_went_wrong_once_is_put_right_at_once(streams: bool) -> None:
    fate = only(AppendStream if streams else UpdateMessage, "dropped")
    scene = Scene(fate, State(task_id="task", can_stream=streams, begun=BEGUN))
    scene.hear(writes("m1", "One. "), then=2.0)
    scene.hear(writes("m1", "Two.\n"), then=0.0)
    assert scene.text == "One. Two.\n"


def test_where_streams_are_refused_messages_are_updated() -> None:
    scene = Scene(always(StartStream, "no_streaming"))
    words = talk(scene, 20, 1.0)
    assert_delivered(scene, words)
    assert len(scene.done(StartStream)) == 1
    assert len(scene.model.messages) == 1


def test_where_a_stream_has_to_wait_a_message_does_not() -> None:
    scene = Scene(always(StartStream, "later"))
    scene.hear(writes("m1", "It is 3.1."), then=0.0)
    assert scene.text == "It is 3.1."


def test_bots_get_no_streams() -> None:
    scene = Scene(state=State(task_id="task", can_stream=False, begun=BEGUN))
    assert_delivered(scene, talk(scene, 10, 1.0))
    assert scene.done(StartStream) == []


def test_updates_keep_their_pace() -> None:
    scene = Scene(state=State(task_id="task", can_stream=False, begun=BEGUN))
    times = []
    for number in range(60):
        before = len(scene.done(UpdateMessage))
        scene.hear(writes("m1", f"w{number}\n"), then=0.1)
        times += [scene.model.now] * (len(scene.done(UpdateMessage)) - before)
    assert len(times) == 3


def crowded(fate: Callable[[Operation], str]) -> Scene:
    """A thread that may write three times a minute, and has just written."""
    scene = Scene(fate)
    scene.driver.pace = WritePace(20.0, 20.0)
    scene.driver.wait(1.0)
    scene.hear(writes("m1", "One.\n"), then=1.0)
    return scene


def test_a_batch_that_had_to_wait_does_not_wait_for_its_turn_again() -> None:
    scene = crowded(only(AppendStream, "later"))
    scene.hear(writes("m1", "Two.\n"), then=19.5)
    assert scene.text == "One.\n"
    scene.driver.wait(2.0)
    assert scene.text == "One.\nTwo.\n"


def test_the_next_message_keeps_the_pace_as_well_until_the_run_ends() -> None:
    scene = crowded(lambda _: "done")
    scene.driver.wait(STREAM_SECONDS + 1.0)
    assert not scene.model.messages[0].streaming
    scene.hear(writes("m1", "\n\nTwo."), then=10.0)
    assert scene.text == "One.\n"
    scene.driver.wait(15.0)
    assert len(scene.done(StartStream)) == 2
    scene.driver.wait(STREAM_SECONDS + 1.0)
    scene.hear(writes("m1", "\n\nThree."), then=1.0)
    assert "Three" not in scene.text
    scene.hear(MessageEnded(SUPERVISOR, "m1"), FinalResult("One.\n\n\nTwo.\n\nThree.", "m1"), then=0.0)
    assert_delivered(scene, ["One.", "Two.", "Three."])


def test_a_thread_is_done_when_all_has_been_told_and_not_before() -> None:
    scene = Scene(always(StopStream, "later"))
    assert not is_done(scene.driver.state)
    scene.hear(*says("m1", "It is 3.1."))
    assert not is_done(scene.driver.state)
    scene.hear(FinalResult("It is 3.1.", "m1"))
    assert not is_done(scene.driver.state)
    scene.model.fate = lambda _: "done"
    scene.driver.finish()
    assert is_done(scene.driver.state)


def test_a_button_that_had_to_wait_is_no_reason_to_write() -> None:
    scene = crowded(only(PostMessage, "later", "later"))
    scene.hear(writes("m1", "Two.\n"), then=15.0)
    assert scene.text == "One.\n"
    assert len(buttons(scene)) == 1


# What is too long


def test_what_slack_finds_too_long_is_said_in_more_messages() -> None:
    text = "\n\n".join(f"Paragraph {number} " + "x" * 300 for number in range(20))

    def fate(operation: Operation) -> str:
        content = getattr(operation, "piece", None) or getattr(operation, "body", None)
        return "too_long" if content is not None and len(content.text) > 2_000 else "done"

    scene = Scene(fate)
    scene.hear(*answers("m1", text))
    scene.driver.finish()
    assert_delivered(scene, [text])
    assert len(scene.model.messages) > 2


def test_plan_and_text_together_leave_room_for_each_other() -> None:
    steps = tuple((f"Step {number} " + "x" * 150, "argocd", "in_progress") for number in range(12))
    scene = Scene()
    scene.hear(plan(*steps))  # type: ignore[arg-type]
    text = "\n\n".join("y" * 200 for _ in range(60))
    scene.hear(*answers("m1", text))
    scene.driver.finish()
    assert_delivered(scene, [text])
    first, *_ = scene.model.messages
    assert len(first.text) + sum(len(card.title) for card in first.cards.values()) < 10_000


# Files


def test_a_file_comes_below_the_answer_that_names_it() -> None:
    scene = Scene()
    scene.hear(*answers("m1", f"Here:\n\n{LONG_CODE}\nThat is all."))
    scene.driver.finish()
    (file,) = scene.model.files
    assert "line_299" in file.content
    assert "line_299" not in scene.text
    assert scene.paragraphs[0] == "Here:"
    assert scene.paragraphs[-1] == "That is all."
    assert isinstance(scene.driver.operations[-1], UploadFile)


@pytest.mark.parametrize("fate", ["other", "too_long", "bad_blocks"])
def test_a_file_that_slack_does_not_take_is_told_as_text(fate: str) -> None:
    scene = Scene(always(UploadFile, fate))
    scene.hear(*answers("m1", f"Here:\n\n{LONG_CODE}"))
    scene.driver.finish()
    assert scene.model.files == []
    assert all(scene.text.count(f"line_{number} = {number}\n") == 1 for number in range(300))
    assert is_done(scene.driver.state)
    assert len(scene.done(UploadFile)) == 1
    assert [type(shown.footer) for shown in scene.model.messages if shown.footer] == [Rating]


def test_of_two_files_the_one_that_slack_takes_is_shared() -> None:
    scene = Scene(only(UploadFile, "other"))
    scene.hear(*answers("m1", f"{LONG_CODE}\n\nAnd:\n\n{LONG_CODE.replace('line', 'row')}"))
    scene.driver.finish()
    assert len(scene.model.files) == 1
    assert "row_299" in scene.model.files[0].content
    assert "line_299" in scene.text


@pytest.mark.parametrize("fate", ["lost", "dropped", "later"])
def test_a_file_is_shared_once(fate: str) -> None:
    scene = Scene(only(UploadFile, fate))
    scene.hear(*answers("m1", LONG_CODE))
    scene.driver.finish()
    assert len(scene.model.files) == 1


# What people delete


def test_a_deleted_message_stays_deleted_and_the_rest_is_shown() -> None:
    scene = Scene()
    scene.hear(plan(("Look", "argocd", "in_progress")), writes("m1", "One. "), then=2.0)
    scene.model.messages.clear()
    scene.hear(writes("m1", "Two. "), then=2.0)
    scene.hear(writes("m1", "Three."), MessageEnded(SUPERVISOR, "m1"), FinalResult("One. Two. Three.", "m1"))
    scene.driver.finish()
    assert_delivered(scene, ["Two. Three."])
    assert scene.statuses == {"[Argocd] Look": "pending"}


def test_an_answer_that_is_deleted_as_it_ends_is_not_said_again() -> None:
    scene = Scene()
    scene.hear(*says("m1", "It is 3.1."), then=2.0)
    scene.model.messages.clear()
    scene.hear(FinalResult("It is 3.1.", "m1"))
    scene.driver.finish()
    assert scene.model.messages == []
    assert is_done(scene.driver.state)


@pytest.mark.parametrize("kind", [SetStatus, StartStream, AppendStream, StopStream, PostMessage])
def test_nothing_more_is_tried_in_a_thread_that_is_gone(kind: type[Operation]) -> None:
    scene = Scene(always(kind, "thread_gone"))
    scene.hear(writes("m1", "One. "), then=6.0)
    scene.hear(writes("m1", "Two."), then=6.0)
    scene.hear(MessageEnded(SUPERVISOR, "m1"), FinalResult("One. Two.", "m1"))
    scene.driver.finish()
    assert is_done(scene.driver.state)
    assert isinstance(scene.driver.operations[-1], kind)


def test_a_thread_in_which_nothing_works_is_given_up() -> None:
    scene = Scene(lambda operation: "done" if isinstance(operation, SetStatus) else "other")
    scene.hear(*answers("m1", "It is 3.1."))
    scene.driver.finish()
    assert is_done(scene.driver.state)
    assert len(scene.driver.operations) < 20


# Life, and the button to stop


def test_a_sign_of_life_comes_first() -> None:
    scene = Scene()
    scene.driver.feed(RunAccepted("task", "trace"))
    scene.driver.settle()
    assert scene.model.statuses == ["is working on it..."]
    assert scene.model.messages == []


@pytest.mark.parametrize("fate", ["other", "lost", "later"])
def test_nothing_depends_on_the_sign_of_life(fate: str) -> None:
    scene = Scene(always(SetStatus, fate))
    scene.hear(*answers("m1", "It is 3.1."), then=40.0)
    assert_delivered(scene, ["It is 3.1."])
    assert len(scene.done(SetStatus)) < 5


def test_a_quick_run_has_no_button() -> None:
    scene = Scene()
    scene.hear(*answers("m1", "It is 3.1."), then=60.0)
    assert len(scene.model.messages) == 1
    assert buttons(scene) == []


@pytest.mark.parametrize(
    "ending", [FinalResult("Done.", "m9"), Failed("x", "It broke."), InputRequired((form("name"),))]
)
def test_a_run_that_takes_a_while_has_a_button_until_it_ends(ending: object) -> None:
    scene = Scene()
    scene.driver.wait(3.9)
    assert buttons(scene) == []
    scene.driver.wait(0.2)
    assert [shown.footer for shown in buttons(scene)] == [Stop("task")]
    scene.driver.wait(60.0)
    assert len(buttons(scene)) == 1
    scene.hear(ending)  # type: ignore[arg-type]
    scene.driver.finish()
    assert buttons(scene) == []


def test_there_is_no_button_before_there_is_something_to_stop() -> None:
    scene = Scene(state=State(begun=BEGUN))
    scene.driver.wait(60.0)
    assert buttons(scene) == []
    scene.driver.feed(RunAccepted("task", "trace"))
    scene.driver.wait(0.0)
    assert len(buttons(scene)) == 1


def test_a_button_that_slack_refuses_is_done_without() -> None:
    scene = Scene(only(PostMessage, "other"))
    scene.driver.wait(60.0)
    assert len(scene.done(PostMessage)) == 1
    scene.hear(*answers("m1", "It is 3.1."))
    assert_delivered(scene, ["It is 3.1."])


def test_a_deleted_button_is_not_posted_again() -> None:
    scene = Scene()
    scene.driver.wait(10.0)
    scene.model.messages.clear()
    scene.model.fate = always(DeleteMessage, "message_gone")
    scene.hear(*answers("m1", "It is 3.1."))
    assert_delivered(scene, ["It is 3.1."])
    assert len(scene.done(DeleteMessage)) == 1


def test_a_button_is_deleted_again_whatever_else_was_refused_and_stays_after_four_refusals() -> None:
    scene = Scene()
    scene.driver.wait(10.0)
    scene.hear(writes("m1", "It is "), then=10.0)
    assert len(buttons(scene)) == 1
    fates = {AppendStream: ["lost"], StopStream: ["other", "other"], DeleteMessage: ["other"]}

    def fate(operation: Operation) -> str:
        left = fates.get(type(operation))
        return left.pop() if left else "done"

    scene.model.fate = fate
    scene.hear(writes("m1", "3."), then=3.0)
    scene.hear(writes("m1", "1."), MessageEnded(SUPERVISOR, "m1"), FinalResult("It is 3.1.", "m1"))
    scene.driver.finish()
    assert not any(fates.values())
    assert buttons(scene) == []
    for refused, left in ((3, 0), (4, 1)):
        scene = Scene(only(DeleteMessage, *["other"] * refused))
        scene.driver.wait(10.0)
        scene.hear(*answers("m1", "It is 3.1."))
        scene.driver.finish()
        assert len(buttons(scene)) == left
        assert_delivered(scene, ["It is 3.1."])


def test_a_button_that_waits_does_not_keep_the_answer_waiting() -> None:
    """In a busy channel the button may have to wait for long."""

    def fate(operation: Operation) -> str:
        is_button = isinstance(operation, PostMessage) and isinstance(operation.body.footer, Stop)
        return "later" if is_button else "done"

    scene = Scene(fate, State(task_id="task", can_stream=False, begun=BEGUN))
    scene.driver.wait(10.0)
    scene.hear(writes("m1", "It is 3.1."), then=1.0)
    assert scene.text == "It is 3.1."


# Where the bot was not asked


def quiet() -> Scene:
    return Scene(state=State(task_id="task", quiet=True, begun=BEGUN))


def test_where_it_was_not_asked_nothing_is_seen_before_there_is_an_answer() -> None:
    scene = quiet()
    scene.hear(plan(("Look", "argocd", "in_progress")), *says("m1", "Let me look."), then=60.0)
    assert scene.driver.operations == []
    scene.hear(*answers("m2", "It is 3.1."))
    scene.driver.finish()
    assert_delivered(scene, ["Let me look.", "It is 3.1."])


@pytest.mark.parametrize(
    "ending", [FinalResult(NOTHING_TO_SAY, "m1"), FinalResult(f"`{NOTHING_TO_SAY}`.", "m1"), Failed("x", "It broke.")]
)
def test_and_nothing_at_all_when_there_is_none(ending: object) -> None:
    scene = quiet()
    scene.hear(*says("m0", "Let me look."), ending, then=60.0)  # type: ignore[arg-type]
    scene.driver.finish()
    assert scene.driver.operations == []
    assert is_done(scene.driver.state)


# The plan


def test_the_plan_is_shown_before_anything_is_said() -> None:
    scene = Scene()
    scene.hear(plan(("Look", "argocd", "pending")), then=0.0)
    assert scene.statuses == {"[Argocd] Look": "pending"}
    assert [shown.plan for shown in scene.model.messages] == ["The plan"]


def test_a_card_is_sent_again_only_when_it_has_changed() -> None:
    scene = Scene()
    scene.hear(plan(("Look", "argocd", "in_progress"), ("Tell", "", "pending")))
    scene.hear(begins("argocd", "c1", "s0"))
    scene.hear(writes("m1", "Looking."))
    pieces = [operation.piece for operation in scene.done(AppendStream)]  # type: ignore[union-attr]
    assert [[card.id for card in piece.cards] for piece in pieces] == [["step:s0"], []]
    assert [piece.plan for piece in pieces] == [None, None]


def test_the_plan_of_a_message_that_takes_no_more_text_is_still_kept_up() -> None:
    scene = Scene()
    scene.hear(plan(("Look", "argocd", "in_progress"), ("Tell", "", "pending")))
    text = "\n\n".join("x" * 400 for _ in range(30))
    scene.hear(writes("m1", text), then=2.0)
    assert len(scene.model.messages) == 2
    scene.hear(plan(("Look", "argocd", "completed"), ("Tell", "", "in_progress")), then=10.0)
    assert scene.statuses == {"[Argocd] Look": "complete", "Tell": "in_progress"}
    assert scene.model.messages[1].cards == {}


def test_the_plan_stands_between_what_was_said_before_it_and_the_answer() -> None:
    model = ThreadModel()
    driver = Driver(model)
    driver.feed(TextDelta(SUPERVISOR, "m1", "I'll"))
    driver.wait(0.1)
    driver.feed(TextDelta(SUPERVISOR, "m1", " ask."))
    driver.feed(MessageEnded(SUPERVISOR, "m1"))
    driver.feed(PlanUpdated((PlanStep("s", "Look", "completed", 0),), "One step"))
    driver.feed(TextDelta(SUPERVISOR, "m2", "Found."))
    driver.feed(FinalResult("Found.", "m2"))
    driver.finish()
    pieces = [operation.piece for operation in driver.operations if isinstance(operation, StartStream | StopStream)]
    assert [(piece.text, len(piece.cards), piece.below) for piece in pieces] == [
        ("I'll", 0, ""),
        (" ask.", 1, "\n\nFound."),
    ]


def test_silence_after_a_form_is_a_word() -> None:
    model = ThreadModel()
    driver = Driver(model, State(task_id="task", quiet=True, begun=model.now))
    driver.feed(InputRequired((Form("f", "Which?"),)))
    driver.finish()
    driver.feed(ReplyReceived(ThreadReply("m", "T1", "U1", "f", {"values": {}}, note="Answered.")))
    driver.feed(RunResumed())
    driver.feed(TextDelta(SUPERVISOR, "m2", NOTHING_TO_SAY))
    driver.feed(FinalResult(NOTHING_TO_SAY, "m2"))
    driver.finish()
    assert model.text.strip() == "_Done._"
