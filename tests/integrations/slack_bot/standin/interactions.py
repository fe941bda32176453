"""Payloads of what people do with buttons, fields, modals and slash commands."""

from __future__ import annotations

from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal
from tests.integrations.slack_bot.standin.directory import Conversation, User
from tests.integrations.slack_bot.standin.messages_json import message_json
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.typing_in import Button, Field, Typed, state_values
from tests.integrations.slack_bot.standin.web_api.views import view_json

Json = dict[str, Any]


def button_action(state: State, button: Button) -> Json:
    action = {
        "type": button.element["type"],
        "action_id": button.element["action_id"],
        "block_id": button.block["block_id"],
        "text": {"type": "plain_text", "text": button.label, "emoji": True},
        "action_ts": state.new_ts(),
    }
    return action if button.value is None else {**action, "value": button.value}


def field_action(state: State, field: Field, entry: Json) -> Json:
    block_id, action_id = field.key
    return {**entry, "action_id": action_id, "block_id": block_id, "action_ts": state.new_ts()}


def message_actions(state: State, user: User, message: SlackMessage, actions: list[Json], typed: Typed) -> Json:
    conversation = state.directory.conversations[message.channel]
    container: Json = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": message.channel,
        "is_ephemeral": bool(message.ephemeral_for),
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    payload = {
        **_from(state, user, "block_actions"),
        "container": container,
        "channel": {"id": conversation.id, "name": _shown_name(conversation)},
        "state": {"values": state_values(message.blocks, typed)},
        "response_url": state.new_response_url(message.channel, user.id, message),
        "actions": actions,
    }
    # Of a message that only one person sees, Slack keeps nothing.
    return payload if message.ephemeral_for else {**payload, "message": message_json(state, message)}


def view_actions(state: State, user: User, modal: Modal, actions: list[Json], typed: Typed) -> Json:
    return {
        **_from(state, user, "block_actions"),
        "container": {"type": "view", "view_id": modal.id},
        "view": view_json(state, modal, typed),
        "actions": actions,
    }


def view_submission(state: State, user: User, modal: Modal, typed: Typed) -> Json:
    return {**_from(state, user, "view_submission"), "view": view_json(state, modal, typed), "response_urls": []}


def view_closed(state: State, user: User, modal: Modal, typed: Typed) -> Json:
    payload = {**_from(state, user, "view_closed"), "view": view_json(state, modal, typed), "is_cleared": False}
    del payload["trigger_id"]
    return payload


def slash_command(state: State, user: User, conversation: Conversation, command: str, text: str) -> Json:
    return {
        "token": "verification",
        "team_id": state.directory.team_id,
        "team_domain": state.directory.team_name.lower(),
        "channel_id": conversation.id,
        "channel_name": _shown_name(conversation),
        "user_id": user.id,
        "user_name": user.name,
        "command": command,
        "text": text,
        "api_app_id": state.directory.app.id,
        "is_enterprise_install": "false",
        "response_url": state.new_response_url(conversation.id, user.id),
        "trigger_id": state.new_trigger(user.id),
    }


def _from(state: State, user: User, kind: str) -> Json:
    team = {"id": state.directory.team_id, "domain": state.directory.team_name.lower()}
    return {
        "type": kind,
        "team": team,
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": team["id"]},
        "api_app_id": state.directory.app.id,
        "token": "verification",
        "trigger_id": state.new_trigger(user.id),
        "enterprise": None,
        "is_enterprise_install": False,
    }


def _shown_name(conversation: Conversation) -> str:
    return "directmessage" if conversation.kind == "im" else conversation.name
