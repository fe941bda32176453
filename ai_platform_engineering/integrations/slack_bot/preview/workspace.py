"""What people see in a Slack workspace, worked out from the calls that Slack has done.

A call that was refused is not applied, and limits are not checked: both are Slack's affair. Time is given from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ai_platform_engineering.integrations.slack_bot.preview.calls import Arguments, Call, Key, content_of
from ai_platform_engineering.integrations.slack_bot.preview.messages import Message, SharedFile, Text, parts_of
from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal, Modals
from ai_platform_engineering.integrations.slack_bot.preview.streams import streamed

STREAM_SECONDS: Final = 300.0
STATUS_SECONDS: Final = 120.0


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
    _places: dict[Key, list[Key]] = field(default_factory=dict)
    """The messages of each thread; those of a channel itself under its name alone."""
    _streams: set[Key] = field(default_factory=set)
    _one_plan: set[Key] = field(default_factory=set)

    def apply(self, method: str, arguments: Arguments, *, now: float, made: str = "", author: str = "") -> None:
        """A Web API call that was done. `made` is what Slack called the thing that it made: the ts of a message, the
        id of a file or of a view. `author` is the bot that called; for views, the person who sees them. A method that
        only reads changes nothing."""
        self.passes(now)
        if effect := _EFFECTS.get(method):
            effect(self, Call(method, arguments, now, made, author or self.bot))

    def passes(self, now: float) -> None:
        """Time passes: Slack ends streams and takes statuses away by itself."""
        for key in list(self._streams):
            if now - (self.messages[key].streaming_since or 0.0) >= STREAM_SECONDS:
                self._streams.discard(key)
                self._change(key, streaming_since=None, expired=True)
        for key, status in list(self.statuses.items()):
            if now - status.since >= STATUS_SECONDS:
                del self.statuses[key]

    def say(self, author: str, channel: str, ts: str, text: str, thread_ts: str = "") -> Message:
        """Somebody writes a message."""
        return self._put(Message(channel, ts, author, thread_ts, (Text(text, mrkdwn=True),)))

    def edit(self, channel: str, ts: str, text: str) -> None:
        """Somebody changes their message."""
        self._change((channel, ts), parts=(Text(text, mrkdwn=True),), edited=True)

    def delete(self, channel: str, ts: str) -> None:
        self._streams.discard((channel, ts))
        self._change((channel, ts), deleted=True, streaming_since=None)

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
        key = (channel, thread_ts)
        head = self.messages.get(key)
        replies = [self.messages[one] for one in self._places.get(key, ())]
        seen = [reply for reply in replies if not reply.deleted and (not viewer or reply.ephemeral_for in ("", viewer))]
        # Of a deleted message that had answers, a trace stays.
        if head is not None and (seen or not head.deleted):
            seen.append(head)
        status = self.statuses.get(key)
        return Transcript(
            channel,
            thread_ts,
            tuple(sorted(seen, key=lambda message: message.ts)),
            status.text if status else "",
            self.titles.get(key, ""),
            self.prompts.get(key, ()),
        )

    def threads(self) -> list[Key]:
        """Every thread there is, oldest first; a message that nobody has answered is one."""
        threads = {(message.channel, message.thread_ts or message.ts) for message in self.messages.values()}
        return sorted(threads, key=lambda key: key[1])

    def streaming(self) -> list[Message]:
        return [self.messages[key] for key in self._streams]

    def _post(self, call: Call) -> None:
        parts, notification = content_of(call.arguments)
        self._make(call, parts=parts, notification=notification, ephemeral_for=call.get("user"))

    def _update(self, call: Call) -> None:
        if not call.replaces_content:
            return
        parts, notification = content_of(call.arguments)
        # Slack marks a message as edited only where its plain text was.
        edited = self.messages[call.key].edited or not call.arguments.get("blocks")
        self._change(call.key, parts=parts, notification=notification, edited=edited, streamed=False, expired=False)

    def _delete(self, call: Call) -> None:
        self.delete(*call.key)

    def _start(self, call: Call) -> None:
        message = self._make(call, streamed=True, streaming_since=call.now)
        key = (message.channel, message.ts)
        self._streams.add(key)
        if call.get("task_display_mode") == "plan":
            self._one_plan.add(key)
        self._grow(key, call.arguments)

    def _append(self, call: Call) -> None:
        self._grow(call.key, call.arguments)

    def _stop(self, call: Call) -> None:
        self._grow(call.key, call.arguments)
        self._streams.discard(call.key)
        parts = (*self.messages[call.key].parts, *parts_of(call.arguments.get("blocks") or ()))
        self._change(call.key, parts=parts, streaming_since=None)

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
            self._make(call, files=tuple(files), parts=(Text(comment, mrkdwn=True),) if comment else ())

    def _react(self, call: Call) -> None:
        key = (call.get("channel"), call.get("timestamp"))
        self._change(key, reactions=(*self.messages[key].reactions, (call.get("name"), call.author)))

    def _make(self, call: Call, **content: Any) -> Message:
        channel = call.get("channel") or call.get("channel_id")
        message = Message(channel, call.made, call.author, call.get("thread_ts"), **content)
        if not message.ephemeral_for:
            self.statuses.pop((message.channel, message.thread_ts), None)
        return self._put(message)

    def _grow(self, key: Key, added: Arguments) -> None:
        self._change(key, parts=streamed(self.messages[key].parts, added, one_plan=key in self._one_plan))

    def _put(self, message: Message) -> Message:
        key = (message.channel, message.ts)
        self.messages[key] = message
        self._places.setdefault((message.channel, message.thread_ts), []).append(key)
        return message

    def _change(self, key: Key, **changes: Any) -> None:
        self.messages[key] = replace(self.messages[key], **changes)


_EFFECTS: Final[Mapping[str, Callable[[Workspace, Call], None]]] = {
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
