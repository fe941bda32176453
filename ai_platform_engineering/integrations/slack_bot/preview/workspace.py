"""A model of a Slack workspace: the messages, modals and statuses that result from successful Web API calls.

It does not check arguments or limits, and the caller does not apply failed calls. The caller passes the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ai_platform_engineering.integrations.slack_bot.preview.calls import Arguments, Key, WebApiCall, content_of
from ai_platform_engineering.integrations.slack_bot.preview.messages import SharedFile, SlackMessage, TextPart, parts_of
from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal, Modals
from ai_platform_engineering.integrations.slack_bot.preview.streams import streamed

STREAM_SECONDS: Final = 300.0
STATUS_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    text: str
    since: float


@dataclass(frozen=True, slots=True)
class Transcript:
    """The visible content of a thread, or of a channel outside of threads."""

    channel: str
    thread_ts: str = ""
    messages: tuple[SlackMessage, ...] = ()
    status: str = ""
    title: str = ""
    prompts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    at: float
    """Seconds since the first moment."""
    transcript: Transcript


@dataclass(slots=True)
class SlackWorkspace:
    bot: str = "UBOT"
    """The author of calls that name no other author."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of people and channels by id."""
    messages: dict[Key, SlackMessage] = field(default_factory=dict)
    statuses: dict[Key, ThreadStatus] = field(default_factory=dict)
    titles: dict[Key, str] = field(default_factory=dict)
    prompts: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    modals: Modals = field(default_factory=Modals)
    uploads: dict[str, SharedFile] = field(default_factory=dict)
    _places: dict[Key, list[Key]] = field(default_factory=dict)
    """The messages of each thread; the messages of a channel itself have an empty thread_ts."""
    _streams: set[Key] = field(default_factory=set)
    _one_plan: set[Key] = field(default_factory=set)

    def apply(self, method: str, arguments: Arguments, *, now: float, new_id: str = "", author: str = "") -> None:
        """Apply a successful Web API call. `new_id` is the id of the object that it created: the ts of a message, the
        id of a file or of a view. `author` is the calling bot, or for views the person who sees them. Methods that
        only read have no effect."""
        self.expire(now)
        if effect := _EFFECTS.get(method):
            effect(self, WebApiCall(method, arguments, now, new_id, author or self.bot))

    def expire(self, now: float) -> None:
        """End the streams and remove the statuses that Slack expires by `now`."""
        for key in list(self._streams):
            if now - (self.messages[key].streaming_since or 0.0) >= STREAM_SECONDS:
                self._streams.discard(key)
                self._change(key, streaming_since=None, expired=True)
        for key, status in list(self.statuses.items()):
            if now - status.since >= STATUS_SECONDS:
                del self.statuses[key]

    def say(self, author: str, channel: str, ts: str, text: str, thread_ts: str = "") -> SlackMessage:
        """Post a message of a person."""
        return self._put(SlackMessage(channel, ts, author, thread_ts, (TextPart(text, mrkdwn=True),)))

    def edit(self, channel: str, ts: str, text: str) -> None:
        """Edit a message of a person."""
        self._change((channel, ts), parts=(TextPart(text, mrkdwn=True),), edited=True)

    def delete(self, channel: str, ts: str) -> None:
        self._streams.discard((channel, ts))
        self._change((channel, ts), deleted=True, streaming_since=None)

    def upload(self, file_id: str, content: bytes) -> None:
        self.uploads[file_id] = replace(self.uploads[file_id], content=content)

    def message(self, channel: str, ts: str) -> SlackMessage | None:
        """The message, unless it was deleted."""
        message = self.messages.get((channel, ts))
        return None if message is None or message.deleted else message

    def name(self, of: str) -> str:
        return self.names.get(of, of)

    def transcript(self, channel: str, thread_ts: str = "", *, viewer: str = "") -> Transcript:
        """A thread, or without `thread_ts` the messages of the channel itself. With a `viewer`, ephemeral messages for
        other people are left out."""
        key = (channel, thread_ts)
        head = self.messages.get(key)
        replies = [self.messages[one] for one in self._places.get(key, ())]
        seen = [reply for reply in replies if not reply.deleted and (not viewer or reply.ephemeral_for in ("", viewer))]
        # A deleted message with replies leaves a placeholder.
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
        """All threads, oldest first; a message without replies counts as a thread."""
        threads = {(message.channel, message.thread_ts or message.ts) for message in self.messages.values()}
        return sorted(threads, key=lambda key: key[1])

    def streaming(self) -> list[SlackMessage]:
        return [self.messages[key] for key in self._streams]

    def _post(self, call: WebApiCall) -> None:
        parts, notification = content_of(call.arguments)
        self._make(call, parts=parts, notification=notification, ephemeral_for=call.get("user"))

    def _update(self, call: WebApiCall) -> None:
        if not call.replaces_content:
            return
        parts, notification = content_of(call.arguments)
        # Slack shows "edited" only for a change of plain text.
        edited = self.messages[call.key].edited or not call.arguments.get("blocks")
        self._change(call.key, parts=parts, notification=notification, edited=edited, streamed=False, expired=False)

    def _delete(self, call: WebApiCall) -> None:
        self.delete(*call.key)

    def _start(self, call: WebApiCall) -> None:
        message = self._make(call, streamed=True, streaming_since=call.now)
        key = (message.channel, message.ts)
        self._streams.add(key)
        if call.get("task_display_mode") == "plan":
            self._one_plan.add(key)
        self._grow(key, call.arguments)

    def _append(self, call: WebApiCall) -> None:
        self._grow(call.key, call.arguments)

    def _stop(self, call: WebApiCall) -> None:
        self._grow(call.key, call.arguments)
        self._streams.discard(call.key)
        parts = (*self.messages[call.key].parts, *parts_of(call.arguments.get("blocks") or ()))
        self._change(call.key, parts=parts, streaming_since=None)

    def _set_status(self, call: WebApiCall) -> None:
        self.statuses.pop(call.thread, None)
        if text := call.get("status"):
            self.statuses[call.thread] = ThreadStatus(text, call.now)

    def _set_title(self, call: WebApiCall) -> None:
        self.titles[call.thread] = call.get("title")

    def _set_prompts(self, call: WebApiCall) -> None:
        self.prompts[call.thread] = tuple(prompt["title"] for prompt in call.arguments["prompts"])

    def _open(self, call: WebApiCall) -> None:
        self.modals.push(Modal(call.new_id, call.author, call.arguments["view"]), alone=call.method == "views.open")

    def _update_view(self, call: WebApiCall) -> None:
        self.modals.update(call.get("view_id") or call.get("external_id"), call.arguments["view"])

    def _begin_upload(self, call: WebApiCall) -> None:
        self.uploads[call.new_id] = SharedFile(call.new_id, call.get("filename"))

    def _share(self, call: WebApiCall) -> None:
        files = [replace(self.uploads[file["id"]], title=file.get("title") or "") for file in call.arguments["files"]]
        comment = call.get("initial_comment")
        if call.get("channel_id"):
            self._make(call, files=tuple(files), parts=(TextPart(comment, mrkdwn=True),) if comment else ())

    def _react(self, call: WebApiCall) -> None:
        key = (call.get("channel"), call.get("timestamp"))
        self._change(key, reactions=(*self.messages[key].reactions, (call.get("name"), call.author)))

    def _make(self, call: WebApiCall, **content: Any) -> SlackMessage:
        channel = call.get("channel") or call.get("channel_id")
        message = SlackMessage(channel, call.new_id, call.author, call.get("thread_ts"), **content)
        if not message.ephemeral_for:
            self.statuses.pop((message.channel, message.thread_ts), None)
        return self._put(message)

    def _grow(self, key: Key, added: Arguments) -> None:
        self._change(key, parts=streamed(self.messages[key].parts, added, one_plan=key in self._one_plan))

    def _put(self, message: SlackMessage) -> SlackMessage:
        key = (message.channel, message.ts)
        self.messages[key] = message
        self._places.setdefault((message.channel, message.thread_ts), []).append(key)
        return message

    def _change(self, key: Key, **changes: Any) -> None:
        self.messages[key] = replace(self.messages[key], **changes)


_EFFECTS: Final[Mapping[str, Callable[[SlackWorkspace, WebApiCall], None]]] = {
    "chat.postMessage": SlackWorkspace._post,
    "chat.postEphemeral": SlackWorkspace._post,
    "chat.update": SlackWorkspace._update,
    "chat.delete": SlackWorkspace._delete,
    "chat.startStream": SlackWorkspace._start,
    "chat.appendStream": SlackWorkspace._append,
    "chat.stopStream": SlackWorkspace._stop,
    "assistant.threads.setStatus": SlackWorkspace._set_status,
    "assistant.threads.setTitle": SlackWorkspace._set_title,
    "assistant.threads.setSuggestedPrompts": SlackWorkspace._set_prompts,
    "views.open": SlackWorkspace._open,
    "views.push": SlackWorkspace._open,
    "views.update": SlackWorkspace._update_view,
    "files.getUploadURLExternal": SlackWorkspace._begin_upload,
    "files.completeUploadExternal": SlackWorkspace._share,
    "reactions.add": SlackWorkspace._react,
}
