"""Operations as calls of Slack's Web API. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.forms.message import form_message
from ai_platform_engineering.integrations.slack_bot.places import Person, Place
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    AppendStream,
    Body,
    DeleteMessage,
    Operation,
    PostForm,
    PostMessage,
    SetStatus,
    StartStream,
    StopStream,
    UpdateForm,
    UpdateMessage,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.web_api.blocks import (
    Block,
    chunks_of,
    footer_blocks,
    message_of,
    plain_text_of,
)

EVENT_TYPE: Final = "platform_engineer"
_DISPENSABLE: Final = ("plan", "context_actions", "actions", "markdown")
"""Blocks that a message can do without, the newest in Slack first."""
_POINTER: Final = re.compile(r"/blocks/(\d+)")


@dataclass(frozen=True, slots=True)
class Job:
    """An operation, where and for whom; `holder` is the run that asks, `after` the last message in the thread that was
    there before, by Slack's clock."""

    place: Place
    recipient: Person
    operation: Operation
    holder: str
    urgent: bool = False
    after: str = ""

    @property
    def number(self) -> int:
        return self.operation.number


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def request_of(job: Job, without: Collection[str] = ()) -> Request:
    """The call that does it, without the blocks that the workspace does not know."""
    place, recipient = job.place, job.recipient
    thread = {"channel": place.channel, "thread_ts": place.thread_ts}
    message = {"channel": place.channel}
    match job.operation:
        case SetStatus(text=text):
            status = {"channel_id": place.channel, "thread_ts": place.thread_ts, "status": text}
            request = Request("assistant.threads.setStatus", status)
        case StartStream(piece=piece):
            to = {"recipient_team_id": recipient.team or place.team, "recipient_user_id": recipient.id}
            stream = {"task_display_mode": "plan", "chunks": chunks_of(piece) or None}
            request = Request("chat.startStream", {**thread, **to, **stream})
        case AppendStream(ts=ts, piece=piece):
            request = Request("chat.appendStream", {**message, "ts": ts, "chunks": chunks_of(piece)})
        case StopStream(ts=ts, piece=piece, footer=footer):
            blocks = [block for block in footer_blocks(footer) if block["type"] not in without]
            rest = {"chunks": chunks_of(piece) or None, "blocks": blocks or None}
            request = Request("chat.stopStream", {**message, "ts": ts, **rest})
        case PostMessage(body=body):
            request = Request("chat.postMessage", {**thread, **_content(body, without), **_posted(job)})
        case UpdateMessage(ts=ts, body=body):
            request = Request("chat.update", {**message, "ts": ts, **_content(body, without)})
        case DeleteMessage(ts=ts):
            request = Request("chat.delete", {**message, "ts": ts})
        case PostForm(form=form, task_id=task):
            request = Request("chat.postMessage", {**thread, **_form(form, task), **_posted(job)})
        case UpdateForm(ts=ts, form=form, task_id=task, note=note):
            request = Request("chat.update", {**message, "ts": ts, **_form(form, task, note)})
        case UploadFile():
            raise TypeError("a file takes several calls")
    return request


def blamed(request: Request, hints: Sequence[str]) -> str | None:
    """The type of the block that Slack did not take, or most probably did not; None if there is none to leave out."""
    blocks: Sequence[Block] = request.arguments.get("blocks") or ()
    types = [block["type"] for block in blocks]
    places = [int(match[1]) for hint in hints if (match := _POINTER.search(hint))]
    named = [types[place] for place in places if place < len(types)]
    return next((kind for kind in (*named, *_DISPENSABLE) if kind in types and kind in _DISPENSABLE), None)


def _content(body: Body, without: Collection[str]) -> dict[str, Any]:
    text, blocks = message_of(body, without)
    if "markdown" in without and (plain := plain_text_of(body)):
        return {"markdown_text": plain}
    return {"text": text, "blocks": blocks}


def _posted(job: Job) -> dict[str, Any]:
    """What the message is found by if the answer is lost; links in an answer are not shown a second time below it."""
    metadata = {"event_type": EVENT_TYPE, "event_payload": {"number": job.number, "run": job.holder}}
    return {"metadata": metadata, "unfurl_links": False, "unfurl_media": False}


def _form(form: Form, task_id: str, note: str | None = None) -> dict[str, Any]:
    text, blocks = form_message(form, task_id, note)
    return {"text": text, "blocks": blocks}
