"""Modals. Only who has just done something can be shown one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal
from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.contents import check_view, with_block_ids
from tests.integrations.slack_bot.standin.refusals import RefusedError
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.typing_in import state_values

Json = dict[str, Any]
STACK_LIMIT = 3


def open_view(state: State, call: ApiCall) -> Json:
    check_view(call.arguments["view"])
    return _shown(state, "views.open", call.arguments["view"], _person(state, call))


def push_view(state: State, call: ApiCall) -> Json:
    check_view(call.arguments["view"])
    person = _person(state, call)
    if len(state.workspace.modals.stacks.get(person, ())) >= STACK_LIMIT:
        raise RefusedError("push_limit_reached")
    return _shown(state, "views.push", call.arguments["view"], person)


def update_view(state: State, call: ApiCall) -> Json:
    modal = state.workspace.modals.find(call.get("view_id") or call.get("external_id"))
    if modal is None:
        # The person may just have closed it.
        raise RefusedError("not_found", fault=call.get("view_id") not in state.hashes)
    if call.get("hash") not in ("", state.hashes[modal.id]):
        raise RefusedError("hash_conflict", fault=False)
    check_view(call.arguments["view"])
    return {"view": replace_view(state, modal, call.arguments["view"])}


def replace_view(state: State, modal: Modal, view: Mapping[str, Any]) -> Json:
    state.hashes[modal.id] = state.new_id()
    state.done("views.update", {"view_id": modal.id, "view": _named(state, view)})
    return view_json(state, state.workspace.modals.find(modal.id) or modal, {})


def show_view(state: State, method: str, view: Mapping[str, Any], person: str) -> Modal:
    modal = Modal(state.new_id("V"), person, _named(state, view))
    state.hashes[modal.id] = state.new_id()
    state.done(method, {"view": modal.view}, made=modal.id, author=person)
    return modal


def view_json(state: State, modal: Modal, typed: Mapping[tuple[str, str], Any]) -> Json:
    """A view as Slack hands it out, with all that was typed into it."""
    stack = state.workspace.modals.stacks.get(modal.person, ())
    ids = [one.id for one in stack]
    place = ids.index(modal.id) if modal.id in ids else 0
    defaults: Json = {"private_metadata": "", "callback_id": "", "external_id": "", "close": None, "submit": None}
    return {
        **defaults,
        "clear_on_close": False,
        "notify_on_close": False,
        **modal.view,
        "id": modal.id,
        "team_id": state.directory.team_id,
        "hash": state.hashes.get(modal.id, ""),
        "root_view_id": ids[0] if ids else modal.id,
        "previous_view_id": ids[place - 1] if place else None,
        "app_id": state.directory.app.id,
        "bot_id": state.directory.app.bot_id,
        "state": {"values": state_values(modal.view["blocks"], typed)},
    }


def _shown(state: State, method: str, view: Mapping[str, Any], person: str) -> Json:
    return {"view": view_json(state, show_view(state, method, view, person), {})}


def _person(state: State, call: ApiCall) -> str:
    """Who has done what the trigger was made for."""
    trigger = state.triggers.get(call.get("trigger_id"))
    if trigger is None:
        raise RefusedError("invalid_trigger_id")
    if trigger.used:
        raise RefusedError("exchanged_trigger_id")
    if state.now > trigger.expires:
        raise RefusedError("expired_trigger_id")
    trigger.used = True
    return trigger.person


def _named(state: State, view: Mapping[str, Any]) -> Json:
    return {**view, "blocks": with_block_ids(view["blocks"], state.new_id)}
