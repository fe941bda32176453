"""Delivery through slack_sdk as it is, over real sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.places import SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    AppendStream,
    Body,
    Card,
    Deferred,
    DeleteMessage,
    Delivered,
    File,
    Operation,
    OperationRejected,
    Piece,
    PostForm,
    PostMessage,
    Rating,
    Rejection,
    Report,
    Retry,
    SetStatus,
    StartStream,
    StopStream,
    Unconfirmed,
    UpdateForm,
    UpdateMessage,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.web_api.budget import LIMITS, MINUTE, Budget
from ai_platform_engineering.integrations.slack_bot.web_api.delivery import Delivery
from ai_platform_engineering.integrations.slack_bot.web_api.error_codes import TEMPORARY, TOKEN_ERRORS, UNCERTAIN
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import web_client
from ai_platform_engineering.utils.serving import listen
from tests.integrations.slack_bot.block_kit import message_problems
from tests.integrations.slack_bot.virtual_clock import VirtualClock
from tests.integrations.slack_bot.web_api import Answer, Slack, refusal

TOKEN_VALUE = "xoxb-secret"
PLACE = ThreadPlace("T1", "C1", "1799999000.000100")
PERSON = SlackUser("T2", "U1")
CARD = Card("s1", "[Jira] Show tickets", "in_progress", "search")
BODY = Body("The answer is 42.", "Two steps", (CARD,), Rating("t1", "trace", "m1"))
FILE = UploadFile(1, File("table.csv", "A table", "a,b"))
FORM = Form("f1", "Create a repository", description="Which one?")


TOO_MANY = Answer({"ok": False, "error": "ratelimited"}, 429, {"Retry-After": "7"}, done=False)
LOST_AFTER = Answer(lost=True)
LOST_BEFORE = Answer(lost=True, done=False)
HUNG_AFTER = Answer(hangs=True)
BROKEN_AFTER = Answer(status=503, body="<html>")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def slack(clock: VirtualClock) -> AsyncIterator[Slack]:
    slack = Slack(clock, PLACE.thread_ts)
    runner = web.AppRunner(slack.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    listener = listen("127.0.0.1", 0)
    slack.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    await web.SockSite(runner, listener).start()
    yield slack
    await runner.cleanup()


@pytest.fixture
async def client(slack: Slack) -> AsyncIterator[AsyncWebClient]:
    async with web_client(TOKEN_VALUE, f"{slack.url}/api/") as client:
        yield client


@pytest.fixture
def budget(clock: VirtualClock) -> Budget:
    return Budget(clock)


@dataclass
class Doer:
    """Does operations for one run in one thread."""

    delivery: Delivery
    holder: str = "run-1"

    async def __call__(self, operation: Operation, *, person: SlackUser = PERSON, urgent: bool = False) -> Report:
        return await self.delivery.do(PLACE, person, operation, urgent=urgent, holder=self.holder)


@pytest.fixture
def do(client: AsyncWebClient, budget: Budget, clock: VirtualClock) -> Doer:
    return Doer(Delivery(client, budget, clock))


@pytest.fixture
async def hasty(slack: Slack, budget: Budget, clock: VirtualClock) -> AsyncIterator[Doer]:
    """Does not wait long for an answer."""
    async with web_client(TOKEN_VALUE, f"{slack.url}/api/", seconds=0.5) as client:
        yield Doer(Delivery(client, budget, clock))


# What is asked of Slack


async def test_a_stream_from_begin_to_end(do: Doer, slack: Slack) -> None:
    report = await do(StartStream(1, Piece("Looking.", "Two steps", (CARD,))))
    ts = slack.own[0]["ts"]
    assert report == Delivered(1, ts)
    assert await do(AppendStream(2, ts, Piece(" Found it."))) == Delivered(2)
    assert await do(StopStream(3, ts, Piece(" Done."), Retry("t1"))) == Delivered(3)
    start, append, stop = (arguments for _, arguments in slack.calls)
    assert slack.methods == ["chat.startStream", "chat.appendStream", "chat.stopStream"]
    assert [chunk["type"] for chunk in start.pop("chunks")] == ["markdown_text", "plan_update", "task_update"]
    assert start == {
        "channel": "C1",
        "thread_ts": PLACE.thread_ts,
        "recipient_team_id": "T2",
        "recipient_user_id": "U1",
        "task_display_mode": "plan",
    }
    assert append == {"channel": "C1", "ts": ts, "chunks": [{"type": "markdown_text", "text": " Found it."}]}
    assert stop["chunks"] == [{"type": "markdown_text", "text": " Done."}]
    assert [block["type"] for block in stop["blocks"]] == ["actions"]
    assert slack.tokens == {f"Bearer {TOKEN_VALUE}"}


async def test_a_stream_that_ends_with_nothing_more(do: Doer, slack: Slack) -> None:
    assert await do(StopStream(1, "1.0")) == Delivered(1)
    assert slack.asked("chat.stopStream") == [{"channel": "C1", "ts": "1.0"}]


async def test_a_message_is_posted_updated_and_deleted(do: Doer, slack: Slack) -> None:
    report = await do(PostMessage(1, BODY))
    assert report == Delivered(1, slack.own[0]["ts"])
    assert await do(UpdateMessage(2, "1.0", BODY)) == Delivered(2)
    assert await do(DeleteMessage(3, "1.0")) == Delivered(3)
    (post,) = slack.asked("chat.postMessage")
    (update,) = slack.asked("chat.update")
    assert message_problems(post["blocks"], post["text"]) == []
    assert post["blocks"] == update["blocks"]
    assert post["thread_ts"] == PLACE.thread_ts
    assert post["metadata"] == {"event_type": "platform_engineer", "event_payload": {"number": 1, "run": "run-1"}}
    assert post["unfurl_links"] is False
    assert slack.asked("chat.delete") == [{"channel": "C1", "ts": "1.0"}]


async def test_a_form_is_posted_and_updated(do: Doer, slack: Slack) -> None:
    report = await do(PostForm(1, FORM, "t1"))
    assert report == Delivered(1, slack.own[0]["ts"])
    assert await do(UpdateForm(2, "1.0", FORM, "t1", "Answered.")) == Delivered(2)
    (post,) = slack.asked("chat.postMessage")
    (update,) = slack.asked("chat.update")
    assert message_problems(post["blocks"], post["text"]) == []
    assert post["metadata"]["event_payload"]["number"] == 1
    assert "Answered." in str(update["blocks"])


async def test_a_file_is_shared_in_the_thread(do: Doer, slack: Slack) -> None:
    assert await do(UploadFile(1, File("table.csv", "A table", "a,b\nü,\ud800"))) == Delivered(1)
    assert slack.methods == ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"]
    assert slack.asked("files.getUploadURLExternal") == [{"filename": "table.csv", "length": "8"}]
    assert slack.uploaded == {"F1": "a,b\nü,?".encode()}
    (shared,) = slack.own
    assert shared["files"] == [{"id": "F1", "title": "A table"}]
    assert slack.asked("files.completeUploadExternal")[0]["channel_id"] == "C1"


async def test_a_status_never_matters(do: Doer, slack: Slack, budget: Budget) -> None:
    slack.next("assistant.threads.setStatus", Answer(), TOO_MANY)
    for number in range(1, 4):
        assert await do(SetStatus(number, "is looking")) == Delivered(number)
    assert len(slack.calls) == 2, "after a 429 Slack is not asked again"
    assert slack.calls[0][1] == {"channel_id": "C1", "thread_ts": PLACE.thread_ts, "status": "is looking"}
    assert budget.pressure("assistant.threads.setStatus") == 1.0


@pytest.mark.parametrize("answer", [refusal("invalid_auth"), LOST_BEFORE, BROKEN_AFTER])
async def test_a_status_that_was_not_set_matters_no_more(do: Doer, slack: Slack, answer: Answer) -> None:
    slack.next("assistant.threads.setStatus", answer)
    assert await do(SetStatus(1, "is looking")) == Delivered(1)


@pytest.mark.parametrize("person", [SlackUser("T1", "B7", is_bot=True), SlackUser("T1", "")])
async def test_there_are_no_streams_for_bots(do: Doer, slack: Slack, person: SlackUser) -> None:
    assert await do(StartStream(1, Piece("Looking.")), person=person) == OperationRejected(1, "no_streaming")
    assert slack.calls == []


@pytest.mark.parametrize(
    "operation",
    [
        AppendStream(1, "1.0", Piece("x" * 12_001)),
        StopStream(1, "1.0", Piece("x" * 12_001)),
        PostMessage(1, Body("x" * 12_001)),
        UpdateMessage(1, "1.0", Body("x" * 12_001)),
    ],
)
async def test_what_is_too_long_is_not_cut_but_refused(do: Doer, slack: Slack, operation: Operation) -> None:
    assert await do(operation) == OperationRejected(1, "too_long")
    assert slack.calls == []


async def test_nothing_to_append_has_arrived(do: Doer, slack: Slack) -> None:
    assert await do(AppendStream(1, "1.0", Piece())) == Delivered(1)
    assert slack.calls == []


# Budgets and 429


async def test_who_has_to_wait_is_told_at_once(do: Doer, slack: Slack, clock: VirtualClock) -> None:
    for number in range(LIMITS["chat.update"] * 8 // 10):
        assert isinstance(await do(UpdateMessage(number, "1.0", BODY)), Delivered)
    asked = len(slack.calls)
    assert await do(UpdateMessage(99, "1.0", BODY)) == Deferred(99, MINUTE)
    assert len(slack.calls) == asked
    assert await do(UpdateMessage(100, "1.0", BODY), urgent=True) == Delivered(100)
    clock.advance(MINUTE)
    assert await do(UpdateMessage(99, "1.0", BODY)) == Delivered(99)


async def test_after_429_no_call_is_made_before_it_is_time(do: Doer, slack: Slack, clock: VirtualClock) -> None:
    slack.next("chat.appendStream", TOO_MANY)
    assert await do(AppendStream(1, "1.0", Piece("a"))) == Deferred(1, 7)
    other = Doer(do.delivery, "run-2")
    assert await other(AppendStream(1, "2.0", Piece("b"))) == Deferred(1, 7)
    assert len(slack.calls) == 1
    clock.advance(7)
    assert await do(AppendStream(1, "1.0", Piece("a"))) == Delivered(1)


async def test_a_posted_message_that_was_one_too_many_is_not_looked_for(do: Doer, slack: Slack) -> None:
    slack.next("chat.postMessage", replace(TOO_MANY, headers={}), refusal("rate_limited"))
    assert await do(PostMessage(1, BODY)) == Deferred(1, 10)
    assert slack.methods == ["chat.postMessage"]


# Refusals


@pytest.mark.parametrize(
    ("operation", "error", "why"),
    [
        (AppendStream(1, "1.0", Piece("a")), "message_not_in_streaming_state", "not_streaming"),
        (AppendStream(1, "1.0", Piece("a")), "stopped_by_user", "not_streaming"),
        (StopStream(1, "1.0"), "message_not_in_streaming_state", "not_streaming"),
        (AppendStream(1, "1.0", Piece("a")), "msg_too_long", "too_long"),
        (PostMessage(1, BODY), "msg_blocks_too_long", "too_long"),
        (AppendStream(1, "1.0", Piece("a")), "invalid_chunks", "bad_blocks"),
        (PostForm(1, FORM, "t1"), "invalid_blocks", "bad_blocks"),
        (StartStream(1, Piece("a")), "channel_type_not_supported", "no_streaming"),
        (StartStream(1, Piece("a")), "method_not_supported_for_channel_type", "no_streaming"),
        (StartStream(1, Piece("a")), "unknown_method", "no_streaming"),
        (StartStream(1, Piece("a")), "missing_recipient_user_id", "no_streaming"),
        (StartStream(1, Piece("a")), "invalid_chunks", "no_streaming"),
        (DeleteMessage(1, "1.0"), "unknown_method", "other"),
        (UpdateMessage(1, "1.0", BODY), "message_not_found", "message_gone"),
        (UpdateMessage(1, "1.0", BODY), "edit_window_closed", "message_gone"),
        (PostMessage(1, BODY), "message_not_found", "thread_gone"),
        (StartStream(1, Piece("a")), "is_archived", "thread_gone"),
        (PostMessage(1, BODY), "restricted_action_thread_locked", "thread_gone"),
        (UpdateMessage(1, "1.0", BODY), "streaming_state_conflict", "other"),
        (PostMessage(1, BODY), "something_new", "other"),
    ],
)
async def test_refusals_are_told_by_what_can_be_done(
    do: Doer, slack: Slack, operation: Operation, error: str, why: Rejection
) -> None:
    slack.always(slack_method(operation), lambda _: refusal(error))
    assert await do(operation) == OperationRejected(1, why, error)


def slack_method(operation: Operation) -> str:
    return {
        StartStream: "chat.startStream",
        AppendStream: "chat.appendStream",
        StopStream: "chat.stopStream",
        PostMessage: "chat.postMessage",
        PostForm: "chat.postMessage",
        UpdateMessage: "chat.update",
        DeleteMessage: "chat.delete",
    }[type(operation)]


async def test_a_message_that_is_gone_is_deleted(do: Doer, slack: Slack) -> None:
    slack.next("chat.delete", refusal("message_not_found"))
    assert await do(DeleteMessage(1, "1.0")) == Delivered(1)


@pytest.mark.parametrize("error", sorted(TOKEN_ERRORS))
async def test_a_bad_token_is_said_once_and_clearly(
    do: Doer, slack: Slack, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    slack.next("chat.postMessage", refusal(error), refusal(error))
    for number in (1, 2):
        # What could not be delivered waits for the bot that is started with a good one.
        assert isinstance(await do(PostMessage(number, BODY)), Deferred)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "SLACK_BOT_TOKEN" in record.getMessage()


async def test_the_log_knows_the_scope_but_neither_texts_nor_tokens(
    do: Doer, slack: Slack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    slack.next("files.getUploadURLExternal", refusal("missing_scope", needed="files:write"))
    slack.next("chat.postMessage", refusal("something_new"), Answer(body="<html>42</html>"), LOST_AFTER)
    assert await do(UploadFile(1, File("a.txt", "A", "The answer is 42."))) == OperationRejected(
        1, "other", "missing_scope"
    )
    for number in range(2, 5):
        await do(PostMessage(number, BODY))
    assert "files:write" in caplog.text
    assert "something_new" in caplog.text
    assert TOKEN_VALUE not in caplog.text
    assert "42" not in caplog.text


@pytest.mark.parametrize("status", [400, 404])
async def test_a_status_without_words_is_a_refusal(do: Doer, slack: Slack, status: int) -> None:
    slack.next("chat.update", Answer(status=status, body="no such thing", done=False))
    assert await do(UpdateMessage(1, "1.0", BODY)) == OperationRejected(1, "other", f"http_{status}")


async def test_a_defect_is_told_as_a_refusal(do: Doer, slack: Slack, caplog: pytest.LogCaptureFixture) -> None:
    broken = replace(FORM, fields=(None,))  # type: ignore[arg-type]
    assert await do(PostForm(1, broken, "t1")) == OperationRejected(1, "other", "internal")
    assert "PostForm" in caplog.text


# Blocks that the workspace does not take


def without_type(kind: str, *, pointing: bool) -> Callable[[dict[str, Any]], Answer | None]:
    def answer(arguments: dict[str, Any]) -> Answer | None:
        types = [block["type"] for block in arguments.get("blocks", ())]
        if kind not in types:
            return None
        hint = f"[ERROR] unsupported type: {kind} [json-pointer:/blocks/{types.index(kind)}/type]"
        return refusal("invalid_blocks", *([hint] if pointing else []))

    return answer


def types_of(arguments: dict[str, Any]) -> list[str]:
    return [block["type"] for block in arguments.get("blocks", ())]


@pytest.mark.parametrize("pointing", [True, False])
async def test_a_plan_that_is_refused_is_written_in_lines_from_then_on(
    do: Doer, slack: Slack, *, pointing: bool
) -> None:
    slack.always("chat.postMessage", without_type("plan", pointing=pointing))
    assert isinstance(await do(PostMessage(1, BODY)), Delivered)
    assert isinstance(await do(PostMessage(2, BODY)), Delivered)
    first, second, third = slack.asked("chat.postMessage")
    assert types_of(first) == ["plan", "markdown", "context_actions"]
    assert types_of(second) == types_of(third) == ["markdown", "context_actions"]
    assert "⏳ [Jira] Show tickets" in second["blocks"][0]["text"]
    assert "The answer is 42." in second["blocks"][0]["text"]


async def test_slack_says_which_block_it_does_not_take(do: Doer, slack: Slack) -> None:
    slack.always("chat.postMessage", without_type("context_actions", pointing=True))
    assert isinstance(await do(PostMessage(1, BODY)), Delivered)
    assert [types_of(arguments) for arguments in slack.asked("chat.postMessage")] == [
        ["plan", "markdown", "context_actions"],
        ["plan", "markdown"],
    ]


async def test_a_footer_that_is_refused_does_not_keep_a_stream_from_ending(do: Doer, slack: Slack) -> None:
    slack.always("chat.stopStream", without_type("context_actions", pointing=False))
    assert await do(StopStream(1, "1.0", Piece("."), BODY.footer)) == Delivered(1)
    assert slack.asked("chat.stopStream")[-1]["chunks"] == [{"type": "markdown_text", "text": "."}]


async def test_without_any_blocks_there_is_still_the_text(do: Doer, slack: Slack) -> None:
    slack.always("chat.update", lambda given: refusal("invalid_blocks") if given.get("blocks") else None)
    assert await do(UpdateMessage(1, "1.0", BODY)) == Delivered(1)
    last = slack.asked("chat.update")[-1]
    assert "The answer is 42." in last["markdown_text"]
    assert "[Jira] Show tickets" in last["markdown_text"]
    assert "text" not in last


async def test_what_is_refused_however_it_is_said_changes_nothing_for_others(
    do: Doer, slack: Slack, clock: VirtualClock
) -> None:
    slack.always("chat.update", lambda _: refusal("invalid_blocks"))
    assert await do(UpdateMessage(1, "1.0", BODY)) == OperationRejected(1, "bad_blocks", "invalid_blocks")
    await do(PostMessage(2, BODY))
    assert types_of(slack.asked("chat.postMessage")[0]) == ["plan", "markdown", "context_actions"]


# Answers that are lost


@pytest.mark.parametrize(
    "answer",
    [
        LOST_AFTER,
        BROKEN_AFTER,
        Answer(status=500, data={"ok": False, "error": "fatal_error"}),
        Answer(body="<html>", status=200),
        *(Answer({"ok": False, "error": error}) for error in sorted(UNCERTAIN)),
    ],
)
class TestLostAnswers:
    async def test_what_can_be_repaired_is_unclear(self, do: Doer, slack: Slack, answer: Answer) -> None:
        for method in ("chat.appendStream", "chat.stopStream", "chat.update", "chat.delete"):
            slack.next(method, answer)
        assert await do(AppendStream(1, "1.0", Piece("a"))) == Unconfirmed(1)
        assert await do(StopStream(2, "1.0")) == Unconfirmed(2)
        assert await do(UpdateMessage(3, "1.0", BODY)) == Unconfirmed(3)
        assert await do(DeleteMessage(4, "1.0")) == Unconfirmed(4)
        assert len(slack.calls) == 4, "nothing is done twice"

    @pytest.mark.parametrize("operation", [PostMessage(2, BODY), PostForm(2, FORM, "t1"), StartStream(2, Piece("Hm."))])
    async def test_what_was_made_is_found(self, do: Doer, slack: Slack, answer: Answer, operation: Operation) -> None:
        slack.next(slack_method(operation), Answer(), answer)
        first = await do(replace(operation, number=1))
        report = await do(operation)
        before, made = slack.own
        assert first == Delivered(1, before["ts"])
        assert report == Delivered(2, made["ts"])

    @pytest.mark.parametrize("operation", [PostMessage(2, BODY), PostForm(2, FORM, "t1"), StartStream(2, Piece("Hm."))])
    async def test_what_was_not_made_is_for_later(
        self, do: Doer, slack: Slack, answer: Answer, operation: Operation
    ) -> None:
        slack.next(slack_method(operation), Answer(), replace(answer, done=False))
        await do(replace(operation, number=1))
        assert isinstance(await do(operation), Deferred)
        assert isinstance(await do(operation), Delivered)
        assert len(slack.own) == 2


@pytest.mark.long
async def test_an_answer_that_does_not_come_is_lost(hasty: Doer, slack: Slack) -> None:
    slack.next("chat.appendStream", HUNG_AFTER)
    slack.next("chat.postMessage", HUNG_AFTER)
    assert await hasty(AppendStream(1, "1.0", Piece("a"))) == Unconfirmed(1)
    assert await hasty(PostMessage(2, BODY)) == Delivered(2, slack.own[0]["ts"])


async def test_a_file_whose_upload_hangs_is_sent_again(hasty: Doer, slack: Slack) -> None:
    slack.next("upload", HUNG_AFTER)
    assert isinstance(await hasty(FILE), Deferred)


async def test_a_message_that_comes_late_is_found(do: Doer, slack: Slack, clock: VirtualClock) -> None:
    """Slack was still at it when the bot looked first."""
    slack.next("chat.postMessage", LOST_BEFORE)
    looks = count()

    def replies(_: dict[str, Any]) -> None:
        if next(looks) == 1:
            slack.post(slack.asked("chat.postMessage")[0])

    slack.always("conversations.replies", replies)
    assert await do(PostMessage(1, BODY)) == Delivered(1, slack.own[0]["ts"])


async def test_messages_of_others_are_not_taken_for_ours(do: Doer, slack: Slack, clock: VirtualClock) -> None:
    slack.next("chat.startStream", LOST_BEFORE)
    slack.messages.append({"ts": f"{clock.now() + 1:.6f}", "user": "U1", "text": "Looking."})
    assert isinstance(await do(StartStream(1, Piece("Looking."))), Deferred)


@pytest.mark.parametrize(
    "piece",
    [
        Piece("**Looking** at [Jira](https://jira.example.com)."),
        Piece("", "Two steps", (CARD,)),
        Piece("", None, (CARD,)),
        Piece("✅ Looking ✅"),
    ],
)
async def test_a_stream_is_known_by_what_it_begins_with(do: Doer, slack: Slack, piece: Piece) -> None:
    slack.next("chat.startStream", LOST_AFTER)
    slack.post({"text": "Something else that the bot said"})
    report = await do(StartStream(1, piece))
    assert report == Delivered(1, slack.own[1]["ts"])


async def test_a_thread_of_many_pages_is_read_to_the_end(do: Doer, slack: Slack) -> None:
    slack.next("chat.postMessage", LOST_AFTER)
    first = Answer({"ok": True, "messages": [], "response_metadata": {"next_cursor": "more"}})
    slack.always("conversations.replies", lambda given: None if given.get("cursor") == "more" else first)
    assert await do(PostMessage(1, BODY)) == Delivered(1, slack.own[0]["ts"])


async def test_looking_takes_its_time_if_slack_wants_that(do: Doer, slack: Slack, clock: VirtualClock) -> None:
    before = clock.now()
    slack.next("chat.postMessage", LOST_AFTER)
    slack.next("conversations.replies", TOO_MANY, BROKEN_AFTER)
    assert await do(PostMessage(1, BODY)) == Delivered(1, slack.own[0]["ts"])
    assert clock.now() - before >= 7


@pytest.mark.parametrize("method", ["conversations.replies", "auth.test"])
async def test_it_is_unclear_only_if_slack_does_not_let_us_look(do: Doer, slack: Slack, method: str) -> None:
    slack.next("chat.postMessage", LOST_AFTER)
    slack.next(method, refusal("missing_scope", needed="channels:history"))
    assert await do(PostMessage(1, BODY)) == Unconfirmed(1)


async def test_who_we_are_is_asked_once(do: Doer, slack: Slack) -> None:
    slack.next("chat.postMessage", LOST_AFTER, LOST_AFTER)
    for number in (1, 2):
        assert isinstance(await do(PostMessage(number, BODY)), Delivered)
    assert slack.methods.count("auth.test") == 1


async def test_in_a_thread_that_is_gone_nothing_arrived(do: Doer, slack: Slack) -> None:
    slack.next("chat.postMessage", LOST_BEFORE)
    slack.always("conversations.replies", lambda _: refusal("thread_not_found"))
    assert isinstance(await do(PostMessage(1, BODY)), Deferred)


# Files, of which only the last of three calls is seen


@pytest.mark.parametrize("answer", [LOST_AFTER, LOST_BEFORE, BROKEN_AFTER])
@pytest.mark.parametrize("step", ["files.getUploadURLExternal", "upload"])
async def test_a_file_that_was_not_shared_is_sent_again(do: Doer, slack: Slack, step: str, answer: Answer) -> None:
    slack.next(step, answer)
    assert isinstance(await do(FILE), Deferred)
    assert await do(FILE) == Delivered(1)
    assert len(slack.own) == 1


async def test_a_file_that_was_shared_is_not_shared_again(do: Doer, slack: Slack) -> None:
    slack.next("files.completeUploadExternal", LOST_AFTER, LOST_BEFORE)
    assert await do(FILE) == Delivered(1, slack.own[0]["ts"])
    assert isinstance(await do(replace(FILE, number=2)), Deferred)
    assert len(slack.own) == 1


async def test_a_file_that_is_not_taken_is_refused(do: Doer, slack: Slack) -> None:
    slack.next("upload", Answer(status=403, body="no", done=False))
    assert await do(FILE) == OperationRejected(1, "other", "http_403")


async def test_every_call_for_a_file_is_within_its_budget(
    do: Doer, slack: Slack, clock: VirtualClock, budget: Budget
) -> None:
    budget.hold("files.completeUploadExternal", 20)
    before = clock.now()
    assert await do(FILE) == Delivered(1)
    assert clock.now() - before == 20
    budget.hold("files.getUploadURLExternal", 20)
    assert await do(FILE) == Deferred(1, 20)


# After a restart


@pytest.mark.parametrize(
    "operation", [PostMessage(7, BODY), StartStream(7, Piece("Looking.")), replace(FILE, number=7)]
)
async def test_what_a_former_life_did_is_found(
    do: Doer, slack: Slack, client: AsyncWebClient, budget: Budget, clock: VirtualClock, operation: Operation
) -> None:
    await do(operation)
    for message in slack.own:
        for file in message.get("files", ()):
            file["name"] = "table.csv"
    clock.advance(1000)
    reborn = Delivery(client, budget, clock)
    found = await reborn.find(PLACE, operation, holder="run-1")
    assert found == Delivered(7, slack.own[0]["ts"])
    assert isinstance(await reborn.find(PLACE, operation, holder="run-1"), Deferred), "it is found once"
    assert await reborn.find(PLACE, AppendStream(8, "1.0", Piece("a")), holder="run-1") == Unconfirmed(8)


async def test_an_older_message_that_begins_alike_is_not_taken_for_it(
    do: Doer, slack: Slack, client: AsyncWebClient, budget: Budget, clock: VirtualClock
) -> None:
    stream = StartStream(7, Piece("Looking."))
    await do(stream)
    older = slack.own[0]["ts"]
    reborn = Delivery(client, budget, clock)
    assert isinstance(await reborn.find(PLACE, stream, holder="run-2", after=older), Deferred)
    reborn.know(PLACE.channel, older)
    assert isinstance(await reborn.find(PLACE, stream, holder="run-2"), Deferred)


# Slack out of reach


async def test_pauses_grow_while_slack_cannot_be_reached(clock: VirtualClock, budget: Budget, unused_port: int) -> None:
    async with web_client(TOKEN_VALUE, f"http://127.0.0.1:{unused_port}/api/") as client:
        do = Doer(Delivery(client, budget, clock))
        reports = []
        for _ in range(9):
            reports.append(await do(PostMessage(1, BODY)))
            clock.advance(60)
    assert reports == [Deferred(1, pause) for pause in (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0)]


async def test_pauses_are_short_again_after_something_got_through(do: Doer, slack: Slack) -> None:
    slack.next("chat.update", *(refusal(error) for error in sorted(TEMPORARY)), Answer(), refusal("org_login_required"))
    pauses = [report.seconds for number in range(3) if isinstance(report := await update(do, number), Deferred)]
    assert pauses == [0.5, 1.0, 2.0]
    assert await update(do, 4) == Delivered(4)
    assert await update(do, 5) == Deferred(5, 0.5)


async def update(do: Doer, number: int) -> Report:
    return await do(UpdateMessage(number, "1.0", BODY))


async def test_slack_sdk_repeats_nothing_by_itself(slack: Slack, budget: Budget, clock: VirtualClock) -> None:
    """slack_sdk's clients retry a call when the connection breaks, unless retries are turned off."""
    async with web_client(TOKEN_VALUE, f"{slack.url}/api/") as client:
        eager = AsyncWebClient(token=TOKEN_VALUE, base_url=f"{slack.url}/api/", session=client.session)
        assert eager.retry_handlers
        slack.next("chat.appendStream", LOST_AFTER)
        assert await Doer(Delivery(eager, budget, clock))(AppendStream(1, "1.0", Piece("a"))) == Unconfirmed(1)
        assert eager.retry_handlers, "the caller's client is unchanged"
    assert len(slack.calls) == 1


async def test_cancelling_is_not_caught(do: Doer, slack: Slack) -> None:
    slack.next("chat.update", HUNG_AFTER)
    task = asyncio.create_task(update(do, 1))
    await slack.heard.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
