"""Forms and approvals: buttons below them, and modals that are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer
from ai_platform_engineering.integrations.slack_bot.forms.ids import BUTTONS, MODALS, Reference, read_reference
from ai_platform_engineering.integrations.slack_bot.forms.modal import modal
from ai_platform_engineering.integrations.slack_bot.forms.reading import (
    OpenModal,
    read_button,
    read_press,
    read_submission,
)
from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.listeners.notice_view import notice_view
from ai_platform_engineering.integrations.slack_bot.listeners.requests import (
    Body,
    SlackLocation,
    location_of,
    person_of,
)
from ai_platform_engineering.integrations.slack_bot.places import Person, Place
from ai_platform_engineering.integrations.slack_bot.words import NOT_OPEN

_ANSWER_SECONDS: Final = 2.0


class Forms:
    def __init__(self, listening: Listening) -> None:
        self._listening = listening

    def listen(self, app: AsyncApp) -> None:
        app.action(BUTTONS)(self.pressed)
        app.view(MODALS)(self.submitted)

    async def pressed(self, ack: AsyncAck, body: Body) -> None:
        await ack()
        if self._listening.first_time("pressed", body.get("trigger_id")):
            location = location_of(body, self._listening.identity.team)
            self._listening.later(location, self._press(body, location))

    async def submitted(self, ack: AsyncAck, body: Body, view: Mapping[str, Any]) -> None:
        """What Slack is answered decides what the modal shows, so everything is looked at first."""
        reference = read_reference(view.get("private_metadata"))
        person = person_of(body, self._listening.identity.team)
        found = await self._open(reference, person)
        if isinstance(found, str) or reference is None:
            await ack(response_action="update", view=notice_view(str(found)))
            return
        outcome = read_submission(found, view)
        if isinstance(outcome, dict):
            await ack(response_action="errors", errors=outcome)
            return
        place = reference.place or Place(self._listening.identity.team, "", "")
        answering = asyncio.create_task(self._answer(reference, found, outcome, person))
        await asyncio.wait({answering}, timeout=_ANSWER_SECONDS)
        if not answering.done():
            await ack()
            self._listening.later(SlackLocation(person, place.channel, place.thread_ts), _told(answering))
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
                place = Place(self._listening.identity.team, location.channel, location.thread_ts)
                view = modal(found, task_id, place, kind)
                await self._listening.client.views_open(trigger_id=body["trigger_id"], view=view)
                return None
            case Form() as again:
                await self._listening.bot.show_again(task_id, again)
                return None
            case answer:
                return await self._answer(pressed.reference, found, answer, location.person)

    async def _open(self, reference: Reference | None, person: Person) -> Form | str:
        """The form, if it is open and this person may answer it; else the sentence to show."""
        if reference is None:
            return NOT_OPEN
        return await self._listening.bot.form(reference.task_id, reference.form_id, person)

    async def _answer(self, reference: Reference, form: Form, answer: Answer, person: Person) -> str | None:
        return await self._listening.bot.answer(reference.task_id, form.form_id, answer, person)


async def _told(answering: asyncio.Task[str | None]) -> str | None:
    return await answering
