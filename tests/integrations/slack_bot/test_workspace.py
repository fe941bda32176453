from __future__ import annotations

from typing import Any

import pytest

from ai_platform_engineering.integrations.slack_bot.preview.messages import PlanPart, TaskCard, TextPart
from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal
from ai_platform_engineering.integrations.slack_bot.preview.workspace import SlackWorkspace
from tests.integrations.slack_bot.standin.plain import plain_modal, plain_transcript

CHANNEL = "C1"
QUESTION = "100.000001"
ANSWER = "101.000001"


def task(name: str, **fields: str) -> dict[str, str]:
    return {"type": "task_update", "id": name, **fields}


def text(words: str) -> dict[str, str]:
    return {"type": "markdown_text", "text": words}


@pytest.fixture
def workspace() -> SlackWorkspace:
    workspace = SlackWorkspace(bot="UBOT", names={"UBOT": "platform", "U1": "ada"})
    workspace.say("U1", CHANNEL, QUESTION, "<@UBOT> what is wrong?")
    return workspace


def start(workspace: SlackWorkspace, *chunks: dict[str, Any], now: float = 101.0, mode: str = "plan") -> None:
    arguments = {"channel": CHANNEL, "thread_ts": QUESTION, "chunks": list(chunks), "task_display_mode": mode}
    workspace.apply("chat.startStream", arguments, now=now, new_id=ANSWER)


def append(workspace: SlackWorkspace, *chunks: dict[str, Any], method: str = "chat.appendStream", **more: Any) -> None:
    arguments = {"channel": CHANNEL, "ts": ANSWER, "chunks": list(chunks), **more}
    workspace.apply(method, arguments, now=102.0)


def test_a_stream_grows_and_ends(workspace: SlackWorkspace) -> None:
    start(workspace, text("I look "))
    append(workspace, text("at it."))
    message = workspace.transcript(CHANNEL, QUESTION).messages[-1]
    assert (message.text, message.streaming, message.author) == ("I look at it.", True, "UBOT")
    button = {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Retry"}}]}
    append(workspace, text(" Done."), method="chat.stopStream", blocks=[button])
    message = workspace.transcript(CHANNEL, QUESTION).messages[-1]
    assert (message.text, message.streaming, message.blocks) == ("I look at it. Done.", False, (button,))


def test_a_task_has_its_last_title_and_all_of_its_details(workspace: SlackWorkspace) -> None:
    start(workspace, task("1", title="Look", status="in_progress", details="one\n"))
    append(workspace, task("1", title="Looked", status="complete", details="two"), task("2", title="Tell"))
    cards = workspace.transcript(CHANNEL, QUESTION).messages[-1].cards
    assert cards == (TaskCard("1", "Looked", "complete", "one\ntwo"), TaskCard("2", "Tell", "pending"))


def test_tasks_of_a_plan_stand_where_the_first_one_came(workspace: SlackWorkspace) -> None:
    start(workspace, text("Before. "), {"type": "plan_update", "title": "Plan"}, task("1", title="Look"))
    append(workspace, text("After."), task("2", title="Tell"))
    message = workspace.transcript(CHANNEL, QUESTION).messages[-1]
    assert message.parts == (
        TextPart("Before. "),
        PlanPart("Plan", (TaskCard("1", "Look"), TaskCard("2", "Tell"))),
        TextPart("After."),
    )
    assert message.text == "Before. After."


def test_tasks_of_a_timeline_stand_where_each_came(workspace: SlackWorkspace) -> None:
    start(workspace, task("1", title="Look"), text("Between."), task("2", title="Tell"), mode="timeline")
    append(workspace, task("1", status="complete"))
    assert workspace.transcript(CHANNEL, QUESTION).messages[-1].parts == (
        PlanPart(cards=(TaskCard("1", "Look", "complete"),)),
        TextPart("Between."),
        PlanPart(cards=(TaskCard("2", "Tell"),)),
    )


def test_an_update_replaces_everything_and_only_plain_text_shows_as_edited(workspace: SlackWorkspace) -> None:
    start(workspace, text("Half"), task("1", title="Look"))
    append(workspace, method="chat.stopStream")
    details = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [{"text": "a log"}]}]}
    card = {"type": "task_card", "task_id": "1", "title": "Looked", "status": "error", "details": details}
    blocks = [{"type": "plan", "title": "Plan", "tasks": [card]}, {"type": "markdown", "text": "Whole"}]
    arguments = {"channel": CHANNEL, "ts": ANSWER, "text": "fallback", "blocks": blocks}
    workspace.apply("chat.update", arguments, now=103)
    message = workspace.transcript(CHANNEL, QUESTION).messages[-1]
    assert (message.text, message.plan, message.edited) == ("Whole", "Plan", False)
    assert message.cards == (TaskCard("1", "Looked", "error", "a log"),)
    workspace.apply("chat.update", {"channel": CHANNEL, "ts": ANSWER, "text": "Plain"}, now=104)
    message = workspace.transcript(CHANNEL, QUESTION).messages[-1]
    assert (message.parts, message.edited) == ((TextPart("Plain", mrkdwn=True),), True)


def test_slack_ends_a_stream_after_five_minutes(workspace: SlackWorkspace) -> None:
    start(workspace, text("Slow"), now=1000)
    workspace.expire(1299)
    assert workspace.transcript(CHANNEL, QUESTION).messages[-1].streaming
    workspace.expire(1300)
    message = workspace.transcript(CHANNEL, QUESTION).messages[-1]
    assert (message.streaming, message.expired) == (False, True)
    workspace.apply("chat.update", {"channel": CHANNEL, "ts": ANSWER, "text": "Whole"}, now=1301)
    assert not workspace.transcript(CHANNEL, QUESTION).messages[-1].expired


def test_a_status_goes_when_a_message_comes_or_two_minutes_have_passed(workspace: SlackWorkspace) -> None:
    status = {"channel_id": CHANNEL, "thread_ts": QUESTION, "status": "is thinking"}
    workspace.apply("assistant.threads.setStatus", status, now=100)
    workspace.expire(219)
    assert workspace.transcript(CHANNEL, QUESTION).status == "is thinking"
    workspace.expire(220)
    assert workspace.transcript(CHANNEL, QUESTION).status == ""
    workspace.apply("assistant.threads.setStatus", status, now=230)
    start(workspace, text("Here"), now=231)
    assert workspace.transcript(CHANNEL, QUESTION).status == ""


def test_a_deleted_message_is_gone_but_the_head_of_a_thread_stays_as_a_trace(workspace: SlackWorkspace) -> None:
    start(workspace, text("Here"))
    workspace.delete(CHANNEL, QUESTION)
    assert [message.deleted for message in workspace.transcript(CHANNEL, QUESTION).messages] == [True, False]
    workspace.apply("chat.delete", {"channel": CHANNEL, "ts": ANSWER}, now=103)
    assert workspace.transcript(CHANNEL, QUESTION).messages == ()
    assert workspace.message(CHANNEL, ANSWER) is None


def test_only_one_person_sees_an_ephemeral_message(workspace: SlackWorkspace) -> None:
    arguments = {"channel": CHANNEL, "thread_ts": QUESTION, "user": "U1", "text": "Not for you"}
    workspace.apply("chat.postEphemeral", arguments, now=102, new_id="102.1")
    assert len(workspace.transcript(CHANNEL, QUESTION, viewer="U1").messages) == 2
    assert len(workspace.transcript(CHANNEL, QUESTION, viewer="U2").messages) == 1


def test_a_file_is_seen_when_its_upload_is_complete(workspace: SlackWorkspace) -> None:
    workspace.apply("files.getUploadURLExternal", {"filename": "log.txt", "length": 3}, now=101, new_id="F1")
    workspace.upload("F1", b"abc")
    assert len(workspace.transcript(CHANNEL, QUESTION).messages) == 1
    files = {"files": [{"id": "F1", "title": "The log"}], "channel_id": CHANNEL, "thread_ts": QUESTION}
    workspace.apply("files.completeUploadExternal", files, now=102, new_id="102.1")
    (file,) = workspace.transcript(CHANNEL, QUESTION).messages[-1].files
    assert (file.title, file.content) == ("The log", b"abc")


def test_a_transcript_in_plain_text(workspace: SlackWorkspace) -> None:
    start(workspace, {"type": "plan_update", "title": "Plan"}, task("1", title="Look", status="complete", details="ok"))
    append(workspace, text("All is well."))
    status = {"channel_id": CHANNEL, "thread_ts": QUESTION, "status": "is writing"}
    workspace.apply("assistant.threads.setStatus", status, now=103)
    assert plain_transcript(workspace.transcript(CHANNEL, QUESTION), workspace.name) == (
        "ada:\n  <@UBOT> what is wrong?\n\nplatform:\n  Plan\n  ✓ Look\n      ok\n  All is well.\n  ▌\n\n… is writing"
    )


def test_a_modal_shows_what_was_wrong_until_it_is_replaced(workspace: SlackWorkspace) -> None:
    field = {
        "type": "input",
        "block_id": "name",
        "label": {"type": "plain_text", "text": "Name"},
        "element": {"type": "plain_text_input", "initial_value": "demo"},
    }
    view = {"title": {"text": "A form"}, "submit": {"text": "Send"}, "blocks": [field]}
    workspace.apply("views.open", {"trigger_id": "1", "view": view}, now=101, new_id="V1", author="U1")
    workspace.modals.refuse("V1", {"name": "is taken"})
    top = workspace.modals.top("U1")
    assert top is not None
    assert plain_modal(top) == "[A form]\nName: [demo]\n! is taken\n[Send]"
    workspace.apply("views.update", {"view_id": "V1", "view": view}, now=102)
    assert workspace.modals.top("U1") == Modal("V1", "U1", view)
    workspace.modals.pop("U1")
    assert workspace.modals.top("U1") is None
