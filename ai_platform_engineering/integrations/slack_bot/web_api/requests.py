"""Builds the Web API request of an operation. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.forms.message import form_message
from ai_platform_engineering.integrations.slack_bot.places import SlackUser, ThreadPlace
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
_OPTIONAL_BLOCKS: Final = ("plan", "context_actions", "actions", "markdown")
"""Block types that a message can omit, the newest in Slack first."""
_POINTER: Final = re.compile(r"/blocks/(\d+)")


@dataclass(frozen=True, slots=True)
class Job:
    """An operation with its thread and recipient. `holder` is the run it belongs to, `after` the timestamp of the last
    message in the thread before the operation."""

    place: ThreadPlace
    recipient: SlackUser
    operation: Operation
    holder: str
    urgent: bool = False
    after: str = ""

    @property
    def number(self) -> int:
        return self.operation.number


@dataclass(frozen=True, slots=True)
class ApiRequest:
    method: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


def request_of(job: Job, without: Collection[str] = ()) -> ApiRequest:
    """The request that performs the operation, without the block types that the workspace does not support."""
    place, recipient = job.place, job.recipient
    thread = {"channel": place.channel, "thread_ts": place.thread_ts}
    message = {"channel": place.channel}
    match job.operation:
        case SetStatus(text=text):
            status = {"channel_id": place.channel, "thread_ts": place.thread_ts, "status": text}
            request = ApiRequest("assistant.threads.setStatus", status)
        case StartStream(piece=piece):
            to = {"recipient_team_id": recipient.team or place.team, "recipient_user_id": recipient.id}
            stream = {"task_display_mode": "plan", "chunks": chunks_of(piece) or None}
            request = ApiRequest("chat.startStream", {**thread, **to, **stream})
        case AppendStream(ts=ts, piece=piece):
            request = ApiRequest("chat.appendStream", {**message, "ts": ts, "chunks": chunks_of(piece)})
        case StopStream(ts=ts, piece=piece, footer=footer):
            blocks = [block for block in footer_blocks(footer) if block["type"] not in without]
            rest = {"chunks": chunks_of(piece) or None, "blocks": blocks or None}
            request = ApiRequest("chat.stopStream", {**message, "ts": ts, **rest})
        case PostMessage(body=body):
            request = ApiRequest("chat.postMessage", {**thread, **_content(body, without), **_posted(job)})
        case UpdateMessage(ts=ts, body=body):
            request = ApiRequest("chat.update", {**message, "ts": ts, **_content(body, without)})
        case DeleteMessage(ts=ts):
            request = ApiRequest("chat.delete", {**message, "ts": ts})
        case PostForm(form=form, task_id=task):
            request = ApiRequest("chat.postMessage", {**thread, **_form(form, task), **_posted(job)})
        case UpdateForm(ts=ts, form=form, task_id=task, note=note):
            request = ApiRequest("chat.update", {**message, "ts": ts, **_form(form, task, note)})
        case UploadFile():
            raise TypeError("a file upload needs several requests")
    return request


def rejected_block(request: ApiRequest, hints: Sequence[str]) -> str | None:
    """The block type that Slack named in its hints, or else most likely rejected; None if no block can be omitted."""
    blocks: Sequence[Block] = request.arguments.get("blocks") or ()
    types = [block["type"] for block in blocks]
    places = [int(match[1]) for hint in hints if (match := _POINTER.search(hint))]
    named = [types[place] for place in places if place < len(types)]
    return next((kind for kind in (*named, *_OPTIONAL_BLOCKS) if kind in types and kind in _OPTIONAL_BLOCKS), None)


def _content(body: Body, without: Collection[str]) -> dict[str, Any]:
    text, blocks = message_of(body, without)
    if "markdown" in without and (plain := plain_text_of(body)):
        return {"markdown_text": plain}
    return {"text": text, "blocks": blocks}


def _posted(job: Job) -> dict[str, Any]:
    """Metadata by which the message is found if the response is lost. Links in the text are not unfurled."""
    metadata = {"event_type": EVENT_TYPE, "event_payload": {"number": job.number, "run": job.holder}}
    return {"metadata": metadata, "unfurl_links": False, "unfurl_media": False}


def _form(form: Form, task_id: str, note: str | None = None) -> dict[str, Any]:
    text, blocks = form_message(form, task_id, note)
    return {"text": text, "blocks": blocks}
