"""The bot: what people say becomes runs of the supervisor, what people decide goes to the run that asked.

Listeners call it. What it has taken is kept; a bot that comes back after it was killed goes on with all of it.
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
from ai_platform_engineering.integrations.slack_bot.forms.words import answered_note
from ai_platform_engineering.integrations.slack_bot.places import Incoming, Person, Place
from ai_platform_engineering.integrations.slack_bot.stop_outcome import StopOutcome
from ai_platform_engineering.integrations.slack_bot.store import KeptRun, Session, StoreError
from ai_platform_engineering.integrations.slack_bot.thread import Environment, Thread
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Body,
    Later,
    PostMessage,
    Rating,
    Retry,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.integrations.slack_bot.thread_view.state import Saying, to_json
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.a2a_common.codec.values import scrub
from ai_platform_engineering.utils.a2a_common.skill_entries import agents_on
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

_MAX_AGE_SECONDS: Final = 30 * 86_400.0
_PRUNE_SECONDS: Final = 3_600.0
_MAX_BREAKS: Final = 3
_MAX_SKILLS: Final = 100
"""More than a message of Slack can list."""
_BEFORE_ALL: Final = 0
"""The number of an operation that no run has asked for."""
_NO_FORM: Final = Form("", "")
"""What people are asked for where they may say anything."""

MayAnswer = Callable[[Form, KeptRun, Person], str | None]
"""None, or the sentence that says why this person may not answer this form."""


class Bot:
    def __init__(self, environment: Environment, may_answer: MayAnswer) -> None:
        self._environment = environment
        self._may_answer = may_answer
        self._threads: dict[str, Thread] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._upkeep: asyncio.Task[None] | None = None
        self._breaks: dict[str, int] = {}
        self._mending: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Go on with what was left when the bot stopped."""
        for kept in self._environment.store.open_runs():
            try:
                thread = Thread(kept, self._environment, again=True)
            except ValidationError:
                logger.error("%s: it was kept by another version of the bot, and cannot go on", kept.id)
                over = replace(kept, state="", done=True)
                self._environment.store.put_run(over)
                self._in_the_background(self._give_up(over, _BEFORE_ALL))
                continue
            self._environment.delivery.know(kept.incoming.place.channel, *thread.state.known_messages())
            if not (thread.waits and is_done(thread.state)):
                self._begin(thread)
        self._upkeep = asyncio.create_task(self._keep_up())

    async def aclose(self) -> None:
        """Let what is being done in Slack be done, and leave; the rest is kept."""
        tasks = [task for task in (self._upkeep, *self._mending, *self._lives.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._environment.link.aclose()

    async def take(self, incoming: Incoming) -> str | None:
        """Answer this message. It is kept when this returns; the same message again changes nothing.

        The sentence to tell the person, where somebody else has to answer first.
        """
        incoming = scrub(incoming)
        store, run_id = self._environment.store, run_id_of(incoming)
        if store.run(run_id) is not None:
            return None
        if any(thread.was_told(run_id) for thread in self._threads_in(incoming.place)):
            # The bot was killed before it could say that it had heard it.
            return None
        waiting = self._waiting_in(incoming.place)
        if waiting is not None:
            return self._say(waiting, incoming, run_id)
        session = store.session(incoming.place)
        now = self._environment.clock.now()
        context_id = session.context_id if session else f"slack-{uuid.uuid4().hex}"
        store.put_session(Session(incoming.place, context_id, now))
        kept = KeptRun(run_id, incoming, context_id, begun=now)
        store.put_run(kept)
        self._begin(Thread(kept, self._environment))
        return None

    async def form(self, task_id: str, form_id: str, person: Person) -> Form | str:
        """A form that is open and that this person may answer, or the sentence that says why there is none."""
        thread = self._thread_of(task_id)
        asked = [asked.form for asked in thread.state.forms if asked.note is None] if thread is not None else []
        # An id that is too long for a button is not sent; one form needs none.
        wanted = asked if not form_id and len(asked) == 1 else [form for form in asked if form.form_id == form_id]
        if thread is None or not wanted:
            return words.NOT_OPEN
        return self._may_answer(wanted[0], thread.kept, person) or wanted[0]

    async def answer(self, task_id: str, form_id: str, answer: Answer, person: Person) -> str | None:
        """Answer a form; if that cannot be done, the sentence that says why. It is kept when this returns."""
        form, thread = await self.form(task_id, form_id, person), self._thread_of(task_id)
        if isinstance(form, str) or thread is None:
            return str(form)
        answer = scrub(answer)
        note = answered_note(form, answer, f"<@{person.id}>")
        message_id = f"{thread.kept.id}-{form.form_id}-{len(thread.state.forms)}"
        saying = Saying(message_id, person.team, person.id, form.form_id, answer_data(answer), note=note)
        self._answer(thread, saying)
        return None

    async def show_again(self, task_id: str, form: Form) -> None:
        """Show a form as somebody has filled it in wrongly, with what is wrong, while it is open."""
        thread = self._thread_of(task_id)
        if thread is not None and any(asked.note is None for asked in thread.state.forms):
            thread.show_again(form)
            self._go_on(thread)

    async def cancel(self, task_id: str, person: Person) -> StopOutcome:
        """Stop that task."""
        return await self._cancel(self._thread_of(task_id), person)

    async def cancel_run(self, run_id: str, person: Person) -> StopOutcome:
        """Stop that run, which the supervisor need not have begun with."""
        return await self._cancel(self._threads.get(run_id) or self._kept_thread(run_id), person)

    async def _cancel(self, thread: Thread | None, person: Person) -> StopOutcome:
        if thread is None or (thread.state.ended and not thread.waits):
            return "already_over"
        if not await thread.cancel(person):
            return "not_stopped"
        # Meanwhile somebody else may have answered or stopped it.
        thread = self._threads.get(thread.kept.id) or self._kept_thread(thread.kept.id) or thread
        if thread.waits:
            thread.stopped(person)
            self._go_on(thread)
        return "stopping"

    async def retry(self, task_id: str, person: Person, *, addition: str = "") -> str | None:
        """Ask again what that task, or that run, was asked; if that cannot be done, the sentence that says why."""
        kept = self._environment.store.run_of_task(task_id) or self._environment.store.run(task_id)
        if kept is None:
            return words.FORGOTTEN
        if self._waiting_in(kept.incoming.place) is not None:
            # The supervisor would take it for the answer, from somebody who may not be allowed to give one.
            return words.ASKED
        if any(run.id.startswith(f"{kept.id}-") for run in self._environment.store.open_runs(kept.incoming.place)):
            return words.ON_IT
        now = self._environment.clock.now()
        text = f"{kept.incoming.text}\n\n{addition}" if addition else kept.incoming.text
        incoming = replace(
            kept.incoming, text=text, person=person, quiet=False, ts=Thread(kept, self._environment).latest
        )
        again = KeptRun(f"{kept.id}-{uuid.uuid4().hex[:8]}", incoming, kept.context_id, begun=now)
        self._environment.store.put_run(again)
        self._begin(Thread(again, self._environment))
        return None

    async def rate(self, rating: Rating, person: Person, *, good: bool, reason: str = "") -> None:
        """Keep what the person thinks of an answer. Raises `ReadableError` where the supervisor does not take it."""
        body = {
            "trace_id": rating.trace_id,
            "task_id": rating.task_id,
            "message_id": rating.message_id,
            "rating": "up" if good else "down",
            "reason": reason,
            "user": self._environment.link.vouched(person, rating.trace_id),
            "surface": "slack",
        }
        try:
            response = await self._environment.link.post("/feedback", body)
            response.raise_for_status()
        except httpx.HTTPError as error:
            logger.warning("feedback was not kept: %s", type(error).__name__)
            raise ReadableError(words.NOT_RATED) from None

    def running_in(self, channel: str, thread_ts: str | None = None) -> list[KeptRun]:
        """The runs that go on in a channel, oldest first."""
        runs = [thread.kept for thread in self._threads.values() if not thread.state.ended or thread.waits]
        runs += [kept for kept in self._environment.store.open_runs() if kept.id not in self._threads]
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
            logger.warning("the workflows could not be listed: %s", type(error).__name__)
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
            supervisor = await self._environment.link.supervisor(patient=False)
        except SupervisorError as error:
            raise ReadableError(words.NO_SUPERVISOR) from error
        return [(agent.name, agent.description, list(agent.examples)) for agent in agents_on(supervisor.card)]

    def _say(self, thread: Thread, incoming: Incoming, message_id: str) -> str | None:
        """Words in a thread that waits for an answer are an answer, from whoever may give one."""
        forms = [asked.form for asked in thread.state.forms if asked.note is None] or [_NO_FORM]
        for form in forms:
            refusal = self._may_answer(form, thread.kept, incoming.person)
            if refusal is not None:
                # A mention comes twice, and is refused once.
                first = self._environment.store.first_time(f"refused/{message_id}", self._environment.clock.now())
                return refusal if first else None
        person = incoming.person
        note = f"Answered by <@{person.id}> in the thread."
        self._answer(thread, Saying(message_id, person.team, person.id, words=incoming.text, note=note))
        # The same message may come again.
        now = self._environment.clock.now()
        self._environment.store.put_run(KeptRun(message_id, incoming, thread.kept.context_id, done=True, begun=now))
        return None

    def _answer(self, thread: Thread, saying: Saying) -> None:
        thread.answer(saying)
        self._go_on(thread)

    def _go_on(self, thread: Thread) -> None:
        if thread.kept.id not in self._threads:
            self._begin(thread)

    def _kept_thread(self, run_id: str) -> Thread | None:
        kept = self._environment.store.run(run_id)
        return None if kept is None else Thread(kept, self._environment)

    def _threads_in(self, place: Place) -> Iterator[Thread]:
        """Those that are not done, oldest first."""
        for kept in self._environment.store.open_runs(place):
            yield self._threads.get(kept.id) or Thread(kept, self._environment)

    def _waiting_in(self, place: Place) -> Thread | None:
        return next((thread for thread in self._threads_in(place) if thread.waits), None)

    def _thread_of(self, task_id: str) -> Thread | None:
        for thread in self._threads.values():
            if task_id and thread.state.task_id == task_id:
                return thread
        kept = self._environment.store.run_of_task(task_id) if task_id else None
        return None if kept is None or not kept.state else Thread(kept, self._environment)

    def _begin(self, thread: Thread) -> None:
        run_id = thread.kept.id
        self._threads[run_id] = thread
        task = self._lives[run_id] = asyncio.create_task(thread.live(), name=run_id)
        task.add_done_callback(lambda ended: self._end(run_id, ended))

    def _end(self, run_id: str, task: asyncio.Task[None]) -> None:
        thread = self._threads.pop(run_id)
        self._lives.pop(run_id, None)
        if task.cancelled():
            return
        if (error := task.exception()) is None:
            self._breaks.pop(run_id, None)
            if thread.is_spoken_to:
                # That was said when it had all but ended.
                self._begin(thread)
            return
        # What an error says may be what people have said.
        frames = "".join(traceback.format_tb(error.__traceback__))
        logger.error("%s: the thread broke off: %s\n%s", run_id, type(error).__name__, frames.rstrip())
        self._in_the_background(self._mend(thread))

    def _in_the_background(self, work: Coroutine[Any, Any, None]) -> None:
        mending = asyncio.create_task(work)
        self._mending.add(mending)
        mending.add_done_callback(self._mending.discard)

    async def _mend(self, thread: Thread) -> None:
        """Go on with a thread that broke off; or, if it breaks off again and again, say that it is over."""
        run_id = thread.kept.id
        breaks = self._breaks[run_id] = self._breaks.get(run_id, 0) + 1
        await self._environment.clock.sleep(2.0**breaks)
        if run_id in self._threads:
            return
        if breaks <= _MAX_BREAKS:
            self._begin(Thread(replace(thread.kept, state=to_json(thread.state)), self._environment, again=True))
            return
        del self._breaks[run_id]
        await self._give_up(thread.kept, thread.state.numbers + 1)

    async def _give_up(self, kept: KeptRun, number: int) -> None:
        """Say that it is over, with an operation of that number, as soon as Slack takes it."""
        sorry = PostMessage(number, Body(f"⚠️ {words.BROKEN}", footer=Retry(kept.id)))
        incoming, delivery = kept.incoming, self._environment.delivery
        while isinstance(
            report := await delivery.do(incoming.place, incoming.person, sorry, urgent=True, holder=kept.id), Later
        ):
            await self._environment.clock.sleep(report.seconds)
        try:
            self._environment.store.put_run(replace(kept, done=True))
        except StoreError as error:
            logger.error("%s: that it is over cannot be kept: %s", kept.id, error)

    @property
    def open_threads(self) -> int:
        return len(self._threads)

    @property
    def streaming(self) -> int:
        """How many of them write into a stream."""
        return sum(thread.is_streaming for thread in self._threads.values())

    async def _keep_up(self) -> None:
        while True:
            try:
                more = self._environment.store.prune(self._environment.clock.now(), _MAX_AGE_SECONDS)
            except StoreError as error:
                logger.error("What is old cannot be forgotten: %s", error)
                more = False
            await asyncio.sleep(0 if more else _PRUNE_SECONDS)


def run_id_of(incoming: Incoming) -> str:
    """The same message is the same run, however often it comes."""
    place = incoming.place
    return f"slack-{place.team}-{place.channel}-{incoming.ts}"
