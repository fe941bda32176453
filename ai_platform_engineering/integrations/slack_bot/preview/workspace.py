"""What people see in a Slack workspace, worked out from the calls that Slack has done.

A call that was refused is not applied, and limits are not checked: both are Slack's affair. Time is given from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import (
    Message,
    Part,
    SharedFile,
    Text,
    parts_of,
)
from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal, Modals
from ai_platform_engineering.integrations.slack_bot.preview.streams import streamed

STREAM_SECONDS = 300.0
STATUS_SECONDS = 120.0
TEXT_LIMIT = 40_000

Arguments = Mapping[str, Any]
Key = tuple[str, str]
"""A channel, and a message in it or the first one of a thread."""


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    arguments: Arguments
    now: float
    made: str
    author: str

    def get(self, name: str) -> str:
        return str(self.arguments.get(name) or "")

    @property
    def key(self) -> Key:
        """The message that it is about."""
        return self.get("channel"), self.get("ts")

    @property
    def thread(self) -> Key:
        return self.get("channel_id"), self.get("thread_ts")


@dataclass(frozen=True, slots=True)
class Status:
    text: str
    since: float


@dataclass(frozen=True, slots=True)
class Transcript:
    """A thread, or the messages of a channel, as somebody sees it at a moment."""

    channel: str
    thread_ts: str = ""
    messages: tuple[Message, ...] = ()
    status: str = ""
    title: str = ""
    prompts: tuple[str, ...] = ()


@dataclass(slots=True)
class Workspace:
    bot: str = "UBOT"
    """Who posts what nobody else is named for."""
    names: dict[str, str] = field(default_factory=dict)
    """What people and channels are called, by id."""
    messages: dict[Key, Message] = field(default_factory=dict)
    statuses: dict[Key, Status] = field(default_factory=dict)
    titles: dict[Key, str] = field(default_factory=dict)
    prompts: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    modals: Modals = field(default_factory=Modals)
    uploads: dict[str, SharedFile] = field(default_factory=dict)
    _one_plan: set[Key] = field(default_factory=set)

    def apply(self, method: str, arguments: Arguments, *, now: float, made: str = "", author: str = "") -> None:
        """A Web API call that was done. `made` is what Slack called the thing that it made: the ts of a message, the
        id of a file or of a view. `author` is the bot that called; for views, the person who sees them. What a method
        that only reads is asked for changes nothing."""
        self.passes(now)
        if effect := _EFFECTS.get(method):
            effect(self, Call(method, arguments, now, made, author or self.bot))

    def passes(self, now: float) -> None:
        """Time passes: Slack ends streams and takes statuses away by itself."""
        for key, message in self.messages.items():
            if message.streaming_since is not None and now - message.streaming_since >= STREAM_SECONDS:
                self.messages[key] = replace(message, streaming_since=None, expired=True)
        for key, status in list(self.statuses.items()):
            if now - status.since >= STATUS_SECONDS:
                del self.statuses[key]

    def say(self, author: str, channel: str, ts: str, text: str, thread_ts: str = "") -> Message:
        """Somebody writes a message."""
        message = Message(channel, ts, author, thread_ts, (Text(text, mrkdwn=True),))
        self.messages[channel, ts] = message
        return message

    def edit(self, channel: str, ts: str, text: str) -> None:
        """Somebody changes their message."""
        self._change(channel, ts, parts=(Text(text, mrkdwn=True),), edited=True)

    def delete(self, channel: str, ts: str) -> None:
        self._change(channel, ts, deleted=True, streaming_since=None)

    def upload(self, file_id: str, content: bytes) -> None:
        self.uploads[file_id] = replace(self.uploads[file_id], content=content)

    def message(self, channel: str, ts: str) -> Message | None:
        """The message, unless it was deleted."""
        message = self.messages.get((channel, ts))
        return None if message is None or message.deleted else message

    def name(self, of: str) -> str:
        return self.names.get(of, of)

    def transcript(self, channel: str, thread_ts: str = "", *, viewer: str = "") -> Transcript:
        """A thread, or without `thread_ts` what stands in the channel itself. Messages for one person only are there
        for that `viewer`; all of them where nobody is named."""
        messages = sorted(
            (
                message
                for message in self.messages.values()
                if message.channel == channel
                and thread_ts in (message.ts, message.thread_ts)
                and (not message.deleted or message.ts == thread_ts)
                and (not viewer or message.ephemeral_for in ("", viewer))
            ),
            key=lambda message: message.ts,
        )
        if all(message.deleted for message in messages):
            messages = []
        key = (channel, thread_ts)
        status = self.statuses.get(key)
        return Transcript(
            channel,
            thread_ts,
            tuple(messages),
            status.text if status else "",
            self.titles.get(key, ""),
            self.prompts.get(key, ()),
        )

    def threads(self) -> list[Key]:
        """Every thread there is, oldest first; a message that nobody has answered is one."""
        return sorted({(message.channel, message.thread_ts or message.ts) for message in self.messages.values()})

    def _post(self, call: Call) -> None:
        parts, notification = _content(call.arguments)
        message = self._made(call, parts=parts, notification=notification, ephemeral_for=call.get("user"))
        self._put(message)

    def _update(self, call: Call) -> None:
        parts, notification = _content(call.arguments)
        if not parts and call.arguments.get("blocks") is None:
            return
        message = self.messages[call.key]
        # Slack marks a message as edited only where its plain text was.
        edited = message.edited or not call.arguments.get("blocks")
        self._change(*call.key, parts=parts, notification=notification, edited=edited, streamed=False, expired=False)

    def _delete(self, call: Call) -> None:
        self.delete(*call.key)

    def _start(self, call: Call) -> None:
        message = self._made(call, streamed=True, streaming_since=call.now)
        if call.get("task_display_mode") == "plan":
            self._one_plan.add((message.channel, message.ts))
        self._put(message)
        self._append(replace(call, arguments={**call.arguments, "ts": message.ts}))

    def _append(self, call: Call) -> None:
        parts = streamed(self.messages[call.key].parts, call.arguments, one_plan=call.key in self._one_plan)
        self._change(*call.key, parts=parts)

    def _stop(self, call: Call) -> None:
        self._append(call)
        parts = (*self.messages[call.key].parts, *parts_of(call.arguments.get("blocks") or ()))
        self._change(*call.key, parts=parts, streaming_since=None)

    def _set_status(self, call: Call) -> None:
        self.statuses.pop(call.thread, None)
        if text := call.get("status"):
            self.statuses[call.thread] = Status(text, call.now)

    def _set_title(self, call: Call) -> None:
        self.titles[call.thread] = call.get("title")

    def _set_prompts(self, call: Call) -> None:
        self.prompts[call.thread] = tuple(prompt["title"] for prompt in call.arguments["prompts"])

    def _open(self, call: Call) -> None:
        self.modals.push(Modal(call.made, call.author, call.arguments["view"]), alone=call.method == "views.open")

    def _update_view(self, call: Call) -> None:
        self.modals.update(call.get("view_id") or call.get("external_id"), call.arguments["view"])

    def _begin_upload(self, call: Call) -> None:
        self.uploads[call.made] = SharedFile(call.made, call.get("filename"))

    def _share(self, call: Call) -> None:
        files = [replace(self.uploads[file["id"]], title=file.get("title") or "") for file in call.arguments["files"]]
        comment = call.get("initial_comment")
        if call.get("channel_id"):
            message = self._made(call, files=tuple(files), parts=(Text(comment, mrkdwn=True),) if comment else ())
            self._put(message)

    def _react(self, call: Call) -> None:
        key = (call.get("channel"), call.get("timestamp"))
        self._change(*key, reactions=(*self.messages[key].reactions, (call.get("name"), call.author)))

    def _made(self, call: Call, **content: Any) -> Message:
        channel = call.get("channel") or call.get("channel_id")
        return Message(channel, call.made, call.author, call.get("thread_ts"), **content)

    def _put(self, message: Message) -> None:
        self.messages[message.channel, message.ts] = message
        if not message.ephemeral_for:
            self.statuses.pop((message.channel, message.thread_ts), None)

    def _change(self, channel: str, ts: str, **changes: Any) -> None:
        self.messages[channel, ts] = replace(self.messages[channel, ts], **changes)


def _content(arguments: Arguments) -> tuple[tuple[Part, ...], str]:
    """What a message shows, and its notification. Where there are blocks, the text is not shown."""
    text = str(arguments.get("text") or "")[:TEXT_LIMIT]
    if blocks := arguments.get("blocks"):
        return parts_of(blocks), text
    if markdown := arguments.get("markdown_text"):
        return (Text(markdown),), markdown
    return ((Text(text, mrkdwn=True),) if text else ()), text


_EFFECTS: Mapping[str, Callable[[Workspace, Call], None]] = {
    "chat.postMessage": Workspace._post,
    "chat.postEphemeral": Workspace._post,
    "chat.update": Workspace._update,
    "chat.delete": Workspace._delete,
    "chat.startStream": Workspace._start,
    "chat.appendStream": Workspace._append,
    "chat.stopStream": Workspace._stop,
    "assistant.threads.setStatus": Workspace._set_status,
    "assistant.threads.setTitle": Workspace._set_title,
    "assistant.threads.setSuggestedPrompts": Workspace._set_prompts,
    "views.open": Workspace._open,
    "views.push": Workspace._open,
    "views.update": Workspace._update_view,
    "files.getUploadURLExternal": Workspace._begin_upload,
    "files.completeUploadExternal": Workspace._share,
    "reactions.add": Workspace._react,
}
