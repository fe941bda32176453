"""People in the workspace. They use what they see: what is not shown to them they cannot press or fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Transcript
from tests.integrations.slack_bot.standin import interactions
from tests.integrations.slack_bot.standin.contents import check_view
from tests.integrations.slack_bot.standin.deliveries import Ack, BotRequest, Deliveries
from tests.integrations.slack_bot.standin.directory import Conversation, User
from tests.integrations.slack_bot.standin.events import (
    agent_session_stopped,
    app_home_opened,
    app_mention,
    assistant_thread_started,
    message_changed,
    message_deleted,
    message_event,
)
from tests.integrations.slack_bot.standin.messages_json import message_json
from tests.integrations.slack_bot.standin.plain import plain_transcript
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.typing_in import (
    NotPossibleError,
    NotThereError,
    entry,
    find_button,
    find_field,
    problems_in,
)
from tests.integrations.slack_bot.standin.web_api.responses import say
from tests.integrations.slack_bot.standin.web_api.views import replace_view, show_view

Typed = dict[tuple[str, str], Any]
Place = Conversation | str


@dataclass(eq=False, slots=True)
class Person:
    """A person; or, with `is_bot`, another bot."""

    state: State
    deliveries: Deliveries
    user: User
    _typed: dict[str, Typed] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.user.id

    @property
    def modal(self) -> Modal:
        """The modal that is open before them."""
        modal = self.state.workspace.modals.top(self.id)
        if modal is None:
            raise NotThereError(f"{self.user.name} sees no modal")
        return modal

    @property
    def has_modal(self) -> bool:
        return self.state.workspace.modals.top(self.id) is not None

    def sees(self, channel: Place, thread_ts: str = "") -> Transcript:
        return self.state.workspace.transcript(self._in(channel).id, thread_ts, viewer=self.id)

    def reads(self, channel: Place, thread_ts: str = "") -> str:
        """What they see, as plain text."""
        return plain_transcript(self.sees(channel, thread_ts), self.state.workspace.name)

    async def says(self, channel: Place, text: str, thread_ts: str | None = None) -> SlackMessage:
        """Write a message. The bot gets its event as from Slack, in the background."""
        conversation = self._in(channel)
        ts = self.state.new_ts()
        message = self.state.workspace.say(self.id, conversation.id, ts, text, thread_ts or "")
        self.state.seen(conversation.id, ts)
        if f"<@{self.state.directory.app.user_id}>" in text and conversation.kind != "im":
            self.state.tell(app_mention(self.state, message))
        self.state.tell(message_event(self.state, message))
        return message

    async def opens_direct_messages(self) -> Conversation:
        """Look at the bot's own messages, where it may have something to suggest."""
        conversation = self.state.directory.direct(self.id)
        self.state.tell(app_home_opened(self.state, conversation.id, self.id))
        return conversation

    async def starts_assistant_thread(self) -> SlackMessage:
        """Open the assistant: a thread in their direct messages, in which they write then."""
        conversation = self.state.directory.direct(self.id)
        ts = self.state.new_ts()
        message = self.state.workspace.say(
            self.state.directory.app.user_id, conversation.id, ts, "New Assistant Thread"
        )
        self.state.seen(conversation.id, ts)
        self.state.tell(assistant_thread_started(self.state, message, self.id))
        return message

    async def edits(self, message: SlackMessage, text: str) -> None:
        before = message_json(self.state, self._mine(message))
        self.state.workspace.edit(message.channel, message.ts, text)
        self.state.seen(message.channel, message.ts)
        after = message_json(self.state, self.state.workspace.messages[message.channel, message.ts])
        self.state.tell(message_changed(self.state, message.channel, after, before))

    async def deletes(self, message: SlackMessage) -> None:
        """Delete a message, which may be anybody's: administrators can."""
        seen = self._seen(message)
        self.state.workspace.delete(message.channel, message.ts)
        self.state.seen(message.channel, message.ts)
        self.state.tell(message_deleted(self.state, seen))

    async def stops(self, message: SlackMessage) -> None:
        """Stop the bot with the button that Slack itself shows while a message streams. Slack ends all streams of the
        thread, and tells the bot."""
        seen = self._seen(message)
        if not seen.streaming:
            raise NotPossibleError("it does not stream")
        thread = self.state.workspace.transcript(seen.channel, seen.thread_ts or seen.ts).messages
        streams = [one.ts for one in thread if one.streaming]
        for ts in streams:
            self.state.stopped_by_people.add((seen.channel, ts))
            self.state.done("chat.stopStream", {"channel": seen.channel, "ts": ts})
        self.state.tell(agent_session_stopped(self.state, seen, self.id, streams))

    async def presses(self, where: SlackMessage | Modal, name: str) -> Ack:
        """Press the button with that label, action id or value."""
        if isinstance(where, Modal):
            action = interactions.button_action(self.state, find_button(where.view["blocks"], name))
            return await self._acts_in_modal(where, action)
        seen = self._seen(where)
        action = interactions.button_action(self.state, find_button(seen.blocks, name))
        return await self._acts_on(seen, action)

    async def fills_in(self, where: SlackMessage | Modal, values: Mapping[str, Any]) -> None:
        """Type and choose, by label, block id or action id. Only elements outside a form send an event at once."""
        blocks = where.view["blocks"] if isinstance(where, Modal) else self._seen(where).blocks
        for name, value in values.items():
            found = find_field(blocks, name)
            filled = entry(found.element, value)
            self._typed.setdefault(_place(where), {})[found.key] = filled
            if found.block["type"] != "input" or found.block.get("dispatch_action"):
                action = interactions.field_action(self.state, found, filled)
                if isinstance(where, Modal):
                    await self._acts_in_modal(where, action)
                else:
                    await self._acts_on(self._seen(where), action)

    async def submits(self, modal: Modal | None = None) -> Ack:
        """Submit the modal that is open. What comes of it is before them then."""
        modal = modal or self.modal
        typed = self._typed.get(modal.id, {})
        if problems := problems_in(modal.view["blocks"], typed):
            raise NotPossibleError(f"Slack does not submit the form: {problems}")
        payload = interactions.view_submission(self.state, self.user, modal, typed)
        ack = await self.deliveries.deliver(BotRequest("interactive", payload))
        if not ack.problem:
            self._after_submission(modal, ack.payload or {})
        return ack

    async def closes(self) -> None:
        modal = self.modal
        payload = interactions.view_closed(self.state, self.user, modal, self._typed.get(modal.id, {}))
        self.state.workspace.modals.pop(self.id)
        if modal.view.get("notify_on_close"):
            await self.deliveries.deliver(BotRequest("interactive", payload))

    async def commands(self, channel: Place, command: str, text: str = "") -> Ack:
        """Use a slash command. An answer that comes with the acknowledgement is shown."""
        app = self.state.directory.app
        if command not in app.commands or "commands" not in app.scopes:
            raise NotPossibleError(f"{command} is not a valid command")
        conversation = self._in(channel)
        payload = interactions.slash_command(self.state, self.user, conversation, command, text)
        ack = await self.deliveries.deliver(BotRequest("slash_commands", payload))
        if ack.payload:
            url = self.state.response_urls[payload["response_url"].rsplit("/", 1)[1]]
            say(self.state, url, ack.payload)
        return ack

    async def _acts_on(self, message: SlackMessage, action: dict[str, Any]) -> Ack:
        typed = self._typed.get(_place(message), {})
        payload = interactions.message_actions(self.state, self.user, message, [action], typed)
        return await self.deliveries.deliver(BotRequest("interactive", payload))

    async def _acts_in_modal(self, modal: Modal, action: dict[str, Any]) -> Ack:
        typed = self._typed.get(modal.id, {})
        payload = interactions.view_actions(self.state, self.user, modal, [action], typed)
        return await self.deliveries.deliver(BotRequest("interactive", payload))

    def _after_submission(self, modal: Modal, answer: Mapping[str, Any]) -> None:
        modals = self.state.workspace.modals
        try:
            match answer:
                case {"response_action": "errors", "errors": errors}:
                    _check_errors(modal.view["blocks"], errors)
                    modals.refuse(modal.id, errors)
                case {"response_action": "update", "view": view}:
                    check_view(view)
                    replace_view(self.state, modal, view)
                case {"response_action": "push", "view": view}:
                    check_view(view)
                    show_view(self.state, "views.push", view, self.id)
                case {"response_action": "clear"}:
                    modals.clear(self.id)
                case _ if not answer:
                    modals.pop(self.id)
                case _:
                    raise RefusedError("invalid_arguments", f"unknown answer: {answer}")
        except RefusedError as refused:
            self.state.violate("refused", "view_submission", str(refused))
        self.state.changed()

    def _in(self, channel: Place) -> Conversation:
        identity = channel if isinstance(channel, str) else channel.id
        conversation = self.state.directory.conversations[identity]
        if self.id not in conversation.members:
            raise NotPossibleError(f"{self.user.name} is not in {conversation.name}")
        return conversation

    def _seen(self, message: SlackMessage) -> SlackMessage:
        """The message as it is now."""
        now = self.state.workspace.message(message.channel, message.ts)
        if now is None or now.ephemeral_for not in ("", self.id):
            raise NotThereError(f"{self.user.name} does not see the message {message.ts}")
        self._in(message.channel)
        return now

    def _mine(self, message: SlackMessage) -> SlackMessage:
        if message.author != self.id:
            raise NotPossibleError("it is another author's message")
        return self._seen(message)


def _place(where: SlackMessage | Modal) -> str:
    return where.id if isinstance(where, Modal) else f"{where.channel}/{where.ts}"


def _check_errors(blocks: Sequence[Mapping[str, Any]], errors: Mapping[str, str]) -> None:
    """Slack shows an error only below a field."""
    fields = {block["block_id"] for block in blocks if block["type"] == "input"}
    if not errors or not set(errors) <= fields:
        raise RefusedError("invalid_arguments", f"errors for {sorted(errors)}, but the fields are {sorted(fields)}")
