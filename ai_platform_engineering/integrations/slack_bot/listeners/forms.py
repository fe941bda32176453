"""Forms and approvals: their buttons, and submitted modals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer
from ai_platform_engineering.integrations.slack_bot.forms.ids import BUTTONS, MODALS, FormReference, read_reference
from ai_platform_engineering.integrations.slack_bot.forms.modal import modal
from ai_platform_engineering.integrations.slack_bot.forms.reading import (
    OpenModal,
    read_button,
    read_press,
    read_submission,
)
from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.private_notices import notice_view
from ai_platform_engineering.integrations.slack_bot.listeners.requests import (
    Body,
    SlackLocation,
    location_of,
    person_of,
)
from ai_platform_engineering.integrations.slack_bot.places import SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.words import NOT_OPEN

_ANSWER_SECONDS: Final = 2.0


class Forms:
    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def listen(self, app: AsyncApp) -> None:
        app.action(BUTTONS)(self.on_button)
        app.view(MODALS)(self.on_submission)

    async def on_button(self, ack: AsyncAck, body: Body) -> None:
        await ack()
        if self._context.first_time("pressed", body.get("trigger_id")):
            location = location_of(body, self._context.identity.team)
            self._context.run_later(location, self._press(body, location))

    async def on_submission(self, ack: AsyncAck, body: Body, view: Mapping[str, Any]) -> None:
        """Validate first: the acknowledgement decides what the modal shows."""
        reference = read_reference(view.get("private_metadata"))
        person = person_of(body, self._context.identity.team)
        found = await self._open(reference, person)
        if isinstance(found, str) or reference is None:
            await ack(response_action="update", view=notice_view(str(found)))
            return
        outcome = read_submission(found, view)
        if isinstance(outcome, dict):
            await ack(response_action="errors", errors=outcome)
            return
        place = reference.place or ThreadPlace(self._context.identity.team, "", "")
        answering = asyncio.create_task(self._answer(reference, found, outcome, person))
        await asyncio.wait({answering}, timeout=_ANSWER_SECONDS)
        if not answering.done():
            await ack()
            self._context.run_later(SlackLocation(person, place.channel, place.thread_ts), _result(answering))
        elif sentence := answering.result():
            await ack(response_action="update", view=notice_view(sentence))
        else:
            await ack()

    async def _press(self, body: Body, location: SlackLocation) -> str | None:
        pressed = read_button(body)
        found = await self._open(pressed.reference if pressed else None, location.person)
        if isinstance(found, str) or pressed is None:
            return str(found)
        task_id = pressed.reference.task_id
        match read_press(found, pressed.press, body):
            case OpenModal(kind):
                place = ThreadPlace(self._context.identity.team, location.channel, location.thread_ts)
                view = modal(found, task_id, place, kind)
                await self._context.client.views_open(trigger_id=body["trigger_id"], view=view)
                return None
            case Form() as again:
                await self._context.bot.show_again(task_id, again)
                return None
            case answer:
                return await self._answer(pressed.reference, found, answer, location.person)

    async def _open(self, reference: FormReference | None, person: SlackUser) -> Form | str:
        """The form, if it is open and this person may answer it; else a sentence to show."""
        if reference is None:
            return NOT_OPEN
        return await self._context.bot.form(reference.task_id, reference.form_id, person)

    async def _answer(self, reference: FormReference, form: Form, answer: Answer, person: SlackUser) -> str | None:
        return await self._context.bot.answer(reference.task_id, form.form_id, answer, person)


async def _result(answering: asyncio.Task[str | None]) -> str | None:
    return await answering
