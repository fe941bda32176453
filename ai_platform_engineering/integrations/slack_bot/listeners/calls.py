"""What listeners ask of the bot."""

from __future__ import annotations

from typing import Protocol

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer
from ai_platform_engineering.integrations.slack_bot.places import Incoming, Person
from ai_platform_engineering.integrations.slack_bot.stop_outcome import StopOutcome
from ai_platform_engineering.integrations.slack_bot.store import KeptRun
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating


class BotCalls(Protocol):
    async def take(self, incoming: Incoming) -> str | None:
        """Answer this message. It is kept when this returns; the same message again changes nothing. The sentence to
        tell the person, where there is one."""

    async def cancel(self, task_id: str, person: Person) -> StopOutcome:
        """Stop that task."""

    async def cancel_run(self, run_id: str, person: Person) -> StopOutcome:
        """Stop that run, also before it is a task."""

    async def retry(self, task_id: str, person: Person, *, addition: str = "") -> str | None:
        """Ask again what that task was asked, and what to do better; if that cannot be done, the sentence that says
        why."""

    async def rate(self, rating: Rating, person: Person, *, good: bool, reason: str = "") -> None:
        """Keep what the person thinks of an answer."""

    async def form(self, task_id: str, form_id: str, person: Person) -> Form | str:
        """A form that is open and that this person may answer, or the sentence that says why there is none."""

    async def answer(self, task_id: str, form_id: str, answer: Answer, person: Person) -> str | None:
        """Say this to a form; if it is not taken, the sentence that says why."""

    async def show_again(self, task_id: str, form: Form) -> None:
        """Show a form with what was typed into it, and what is wrong with that."""

    def running_in(self, channel: str, thread_ts: str | None = None) -> list[KeptRun]:
        """The runs that go on in a channel."""

    async def agents(self) -> list[tuple[str, str]]:
        """Names of the agents, and what they do."""

    async def examples(self) -> list[str]:
        """Questions that it can answer."""

    async def skills(self) -> list[tuple[str, str]]:
        """Names of the skills, and what they are for."""

    async def workflows(self) -> list[tuple[str, str]]:
        """Names of the workflows, and what they do."""
