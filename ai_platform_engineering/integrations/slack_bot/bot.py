"""The bot: turns messages into runs of the supervisor, and passes answers to the run that asked.

Listeners call it. Accepted messages are stored, and a restarted bot continues their runs.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, Final

import httpx
from pydantic import ValidationError

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, answer_data
from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.forms.message import answered_note
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, StopOutcome, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import BotStoreError, StoredRun, ThreadSession
from ai_platform_engineering.integrations.slack_bot.thread import Environment, Thread
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Body,
    Deferred,
    PostMessage,
    Rating,
    Retry,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.integrations.slack_bot.thread_view.state import ThreadReply, to_json
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.a2a_common.codec.values import scrub
from ai_platform_engineering.utils.a2a_common.protocol import agents_on
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.logs import FRAMES

logger = logging.getLogger(__name__)

_MAX_AGE_SECONDS: Final = 30 * 86_400.0
_PRUNE_SECONDS: Final = 3_600.0
_MAX_FAILURES: Final = 3
_MAX_SKILLS: Final = 100
"""More than a Slack message can list."""
_NO_RUN_NUMBER: Final = 0
"""Operation number for messages that the bot posts outside a run."""
_NO_FORM: Final = Form("", "")
"""Stands for the question of a run that waits without a form."""

MayAnswer = Callable[[Form, StoredRun, SlackUser], str | None]
"""None if the person may answer the form, or the sentence that says why not."""


class Bot:
    def __init__(self, environment: Environment, may_answer: MayAnswer) -> None:
        self._environment = environment
        self._may_answer = may_answer
        self._threads: dict[str, Thread] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._pruning: asyncio.Task[None] | None = None
        self._failures: dict[str, int] = {}
        self._background: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Resume the runs that were open when the bot stopped."""
        for stored in self._environment.store.open_runs():
            try:
                thread = Thread(stored, self._environment, resumed=True)
            except ValidationError:
                logger.error(
                    "%s: its state is from another version of the bot and cannot be read; the run is closed", stored.id
                )
                closed = replace(stored, state="", done=True)
                self._environment.store.put_run(closed)
                self._run_in_background(self._give_up(closed, _NO_RUN_NUMBER))
                continue
            self._environment.delivery.know(stored.incoming.place.channel, *thread.state.known_messages())
            if not (thread.waits and is_done(thread.state)):
                self._start(thread)
        self._pruning = asyncio.create_task(self._prune())

    async def aclose(self) -> None:
        """Finish the operations in flight and stop. Open runs stay in the store."""
        tasks = [task for task in (self._pruning, *self._background, *self._tasks.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._environment.link.aclose()

    async def take(self, incoming: Incoming) -> str | None:
        """Start a run for a message, or pass it to the run that waits in its thread. Idempotent, and stored on return.

        Returns a sentence for the person if they may not answer the waiting run.
        """
        incoming = scrub(incoming)
        store, run_id = self._environment.store, run_id_of(incoming)
        if store.run(run_id) is not None:
            return None
        if any(thread.has_reply(run_id) for thread in self._threads_in(incoming.place)):
            # The bot was killed before it acknowledged the message, so Slack sent it again.
            return None
        waiting = self._waiting_in(incoming.place)
        if waiting is not None:
            return self._reply(waiting, incoming, run_id)
        session = store.session(incoming.place)
        now = self._environment.clock.now()
        context_id = session.context_id if session else f"slack-{uuid.uuid4().hex}"
        store.put_session(ThreadSession(incoming.place, context_id, now))
        stored = StoredRun(run_id, incoming, context_id, begun=now)
        store.put_run(stored)
        earlier = [thread for thread in self._threads.values() if thread.stored.context_id == context_id]
        self._start(Thread(stored, self._environment, earlier=earlier[-1] if earlier else None))
        return None

    async def form(self, task_id: str, form_id: str, person: SlackUser) -> Form | str:
        """An open form that this person may answer, or a sentence that says why there is none."""
        thread = self._thread_of(task_id)
        asked = [asked.form for asked in thread.state.forms if asked.note is None] if thread is not None else []
        # A button omits an id that is too long for it. With a single open form, none is needed.
        wanted = asked if not form_id and len(asked) == 1 else [form for form in asked if form.form_id == form_id]
        if thread is None or not wanted:
            return words.NOT_OPEN
        return self._may_answer(wanted[0], thread.stored, person) or wanted[0]

    async def answer(self, task_id: str, form_id: str, answer: Answer, person: SlackUser) -> str | None:
        """Answer a form. Returns a sentence if that is not possible. The answer is stored on return."""
        form, thread = await self.form(task_id, form_id, person), self._thread_of(task_id)
        if isinstance(form, str) or thread is None:
            return str(form)
        answer = scrub(answer)
        note = answered_note(form, answer, f"<@{person.id}>")
        message_id = f"{thread.stored.id}-{form.form_id}-{len(thread.state.forms)}"
        reply = ThreadReply(message_id, person.team, person.id, form.form_id, answer_data(answer), note=note)
        self._answer(thread, reply)
        return None

    async def show_again(self, task_id: str, form: Form) -> None:
        """Show a form with a person's invalid values and the validation errors, while it is open."""
        thread = self._thread_of(task_id)
        if thread is not None and any(asked.note is None for asked in thread.state.forms):
            thread.show_again(form)
            self._ensure_running(thread)

    async def cancel(self, task_id: str, person: SlackUser) -> StopOutcome:
        """Stop that task."""
        return await self._cancel(self._thread_of(task_id), person)

    async def cancel_run(self, run_id: str, person: SlackUser) -> StopOutcome:
        """Stop a run, which may not have a task yet."""
        return await self._cancel(self._threads.get(run_id) or self._stored_thread(run_id), person)

    async def _cancel(self, thread: Thread | None, person: SlackUser) -> StopOutcome:
        if thread is None or (thread.state.ended and not thread.waits):
            return "already_over"
        if not await thread.cancel(person):
            return "not_stopped"
        # Another person may have answered or stopped the run meanwhile.
        thread = self._threads.get(thread.stored.id) or self._stored_thread(thread.stored.id) or thread
        if thread.waits:
            thread.stopped(person)
            self._ensure_running(thread)
        return "stopping"

    async def retry(self, task_id: str, person: SlackUser, *, addition: str = "") -> str | None:
        """Repeat the question of a task or a run. Returns a sentence if that is not possible."""
        stored = self._environment.store.run_of_task(task_id) or self._environment.store.run(task_id)
        if stored is None:
            return words.FORGOTTEN
        if self._waiting_in(stored.incoming.place) is not None:
            # The supervisor would take it as the answer, from a person who may not be allowed to give one.
            return words.ASKED
        if any(run.id.startswith(f"{stored.id}-") for run in self._environment.store.open_runs(stored.incoming.place)):
            return words.ON_IT
        now = self._environment.clock.now()
        text = f"{stored.incoming.text}\n\n{addition}" if addition else stored.incoming.text
        incoming = replace(
            stored.incoming, text=text, person=person, quiet=False, ts=Thread(stored, self._environment).latest
        )
        again = StoredRun(f"{stored.id}-{uuid.uuid4().hex[:8]}", incoming, stored.context_id, begun=now)
        self._environment.store.put_run(again)
        self._start(Thread(again, self._environment))
        return None

    async def rate(self, rating: Rating, person: SlackUser, *, good: bool, reason: str = "") -> None:
        """Send the rating of an answer to the supervisor. Raises `ReadableError` if that fails."""
        body = {
            "trace_id": rating.trace_id,
            "task_id": rating.task_id,
            "message_id": rating.message_id,
            "rating": "up" if good else "down",
            "reason": reason,
            "user": self._environment.link.signed_user(person, rating.trace_id),
            "surface": "slack",
        }
        try:
            response = await self._environment.link.post("/feedback", body)
            response.raise_for_status()
        except httpx.HTTPError as error:
            logger.warning("The rating could not be stored: %s", type(error).__name__)
            raise ReadableError(words.NOT_RATED) from None

    def running_in(self, channel: str, thread_ts: str | None = None) -> list[StoredRun]:
        """The open runs in a channel, oldest first."""
        runs = [thread.stored for thread in self._threads.values() if not thread.state.ended or thread.waits]
        runs += [stored for stored in self._environment.store.open_runs() if stored.id not in self._threads]
        here = [run for run in runs if run.incoming.place.channel == channel]
        return sorted(
            (run for run in here if thread_ts in (None, run.incoming.place.thread_ts)), key=lambda run: run.begun
        )

    async def agents(self) -> list[tuple[str, str]]:
        return [(name, description) for name, description, _ in await self._card_agents()]

    async def examples(self) -> list[str]:
        return [example for _, _, examples in await self._card_agents() for example in examples]

    async def workflows(self) -> list[tuple[str, str]]:
        try:
            rows = (await self._environment.link.get("/workflows"))["workflows"]
            return [(row["name"], row["description"]) for row in rows if row["ready"]]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            logger.warning("The workflows could not be listed: %s", type(error).__name__)
            raise ReadableError(words.NO_SUPERVISOR) from None

    async def skills(self) -> list[tuple[str, str]]:
        try:
            rows = (await self._environment.link.get(f"/skills?limit={_MAX_SKILLS}"))["skills"]
            return [(row["name"], row["description"]) for row in rows]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            logger.warning("The skills could not be listed: %s", type(error).__name__)
            raise ReadableError(words.NO_SUPERVISOR) from None

    async def _card_agents(self) -> list[tuple[str, str, list[str]]]:
        try:
            supervisor = await self._environment.link.supervisor(wait=False)
        except SupervisorError as error:
            raise ReadableError(words.NO_SUPERVISOR) from error
        return [(agent.name, agent.description, list(agent.examples)) for agent in agents_on(supervisor.card)]

    def _reply(self, thread: Thread, incoming: Incoming, message_id: str) -> str | None:
        """Pass a message to the run that waits in its thread, if the person may answer."""
        forms = [asked.form for asked in thread.state.forms if asked.note is None] or [_NO_FORM]
        for form in forms:
            refusal = self._may_answer(form, thread.stored, incoming.person)
            if refusal is not None:
                # Slack sends a mention as two events; the person gets one reply.
                first = self._environment.store.first_time(f"refused/{message_id}", self._environment.clock.now())
                return refusal if first else None
        person = incoming.person
        note = f"Answered by <@{person.id}> in the thread."
        self._answer(thread, ThreadReply(message_id, person.team, person.id, text=incoming.text, note=note))
        # Slack may send the same message again.
        now = self._environment.clock.now()
        self._environment.store.put_run(StoredRun(message_id, incoming, thread.stored.context_id, done=True, begun=now))
        return None

    def _answer(self, thread: Thread, reply: ThreadReply) -> None:
        thread.answer(reply)
        self._ensure_running(thread)

    def _ensure_running(self, thread: Thread) -> None:
        if thread.stored.id not in self._threads:
            self._start(thread)

    def _stored_thread(self, run_id: str) -> Thread | None:
        stored = self._environment.store.run(run_id)
        return None if stored is None else Thread(stored, self._environment)

    def _threads_in(self, place: ThreadPlace) -> Iterator[Thread]:
        """The threads of the open runs, oldest first."""
        for stored in self._environment.store.open_runs(place):
            yield self._threads.get(stored.id) or Thread(stored, self._environment)

    def _waiting_in(self, place: ThreadPlace) -> Thread | None:
        return next((thread for thread in self._threads_in(place) if thread.waits), None)

    def _thread_of(self, task_id: str) -> Thread | None:
        for thread in self._threads.values():
            if task_id and thread.state.task_id == task_id:
                return thread
        stored = self._environment.store.run_of_task(task_id) if task_id else None
        return None if stored is None or not stored.state else Thread(stored, self._environment)

    def _start(self, thread: Thread) -> None:
        run_id = thread.stored.id
        self._threads[run_id] = thread
        task = self._tasks[run_id] = asyncio.create_task(thread.run(), name=run_id)
        task.add_done_callback(lambda ended: self._ended(run_id, ended))

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        thread = self._threads.pop(run_id)
        self._tasks.pop(run_id, None)
        if task.cancelled():
            return
        if (error := task.exception()) is None:
            self._failures.pop(run_id, None)
            if thread.has_queued_reply:
                # The reply was queued just before the task ended.
                self._start(thread)
            return
        # The text of the error may contain a person's message, so only its type and traceback are logged.
        frames = "".join(traceback.format_tb(error.__traceback__))
        logger.error("%s: the thread failed: %s", run_id, type(error).__name__, extra={FRAMES: frames})
        self._run_in_background(self._restart(thread))

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _restart(self, thread: Thread) -> None:
        """Restart a failed thread after a backoff. After repeated failures, post that the run is over."""
        run_id = thread.stored.id
        failures = self._failures[run_id] = self._failures.get(run_id, 0) + 1
        await self._environment.clock.sleep(2.0**failures)
        if run_id in self._threads:
            return
        if failures <= _MAX_FAILURES:
            self._start(Thread(replace(thread.stored, state=to_json(thread.state)), self._environment, resumed=True))
            return
        del self._failures[run_id]
        await self._give_up(thread.stored, thread.state.last_number + 1)

    async def _give_up(self, stored: StoredRun, number: int) -> None:
        """Post that the run is over, with that operation number, retrying while Slack defers it."""
        notice = PostMessage(number, Body(f"⚠️ {words.BROKEN}", footer=Retry(stored.id)))
        incoming, delivery = stored.incoming, self._environment.delivery
        while isinstance(
            report := await delivery.do(incoming.place, incoming.person, notice, urgent=True, holder=stored.id),
            Deferred,
        ):
            await self._environment.clock.sleep(report.seconds)
        try:
            self._environment.store.put_run(replace(stored, done=True))
        except BotStoreError as error:
            logger.error("%s: the end of the run cannot be stored: %s", stored.id, error)

    @property
    def open_threads(self) -> int:
        return len(self._threads)

    @property
    def streaming(self) -> int:
        """The number of threads with an open stream."""
        return sum(thread.is_streaming for thread in self._threads.values())

    async def _prune(self) -> None:
        while True:
            try:
                more = self._environment.store.prune(self._environment.clock.now(), _MAX_AGE_SECONDS)
            except BotStoreError as error:
                logger.error("Old runs cannot be deleted: %s", error)
                more = False
            await asyncio.sleep(0 if more else _PRUNE_SECONDS)


def run_id_of(incoming: Incoming) -> str:
    """The id of a message's run. It is deterministic, so a repeated event is the same run."""
    place = incoming.place
    return f"slack-{place.team}-{place.channel}-{incoming.ts}"
