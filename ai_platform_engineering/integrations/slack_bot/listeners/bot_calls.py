"""The interface of the bot that the listeners call. A returned sentence is shown to the person only."""

from __future__ import annotations

from typing import Protocol

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, StopOutcome
from ai_platform_engineering.integrations.slack_bot.store import StoredRun
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating


class BotCalls(Protocol):
    async def take(self, incoming: Incoming) -> str | None:
        """Answer this message. It is stored when this returns; a second call with the same message has no effect.
        Returns a sentence for the person, if there is one."""

    async def cancel(self, task_id: str, person: SlackUser) -> StopOutcome:
        """Cancel the task."""

    async def cancel_run(self, run_id: str, person: SlackUser) -> StopOutcome:
        """Cancel the run, also before the supervisor has created its task."""

    async def retry(self, task_id: str, person: SlackUser, *, addition: str = "") -> str | None:
        """Send the question of the task again, with `addition`. Returns a sentence if that is not possible."""

    async def rate(self, rating: Rating, person: SlackUser, *, good: bool, reason: str = "") -> None:
        """Store the person's rating of an answer."""

    async def form(self, task_id: str, form_id: str, person: SlackUser) -> Form | str:
        """An open form that this person may answer, or a sentence that says why there is none."""

    async def answer(self, task_id: str, form_id: str, answer: Answer, person: SlackUser) -> str | None:
        """Answer a form. Returns a sentence if the answer is not accepted."""

    async def show_again(self, task_id: str, form: Form) -> None:
        """Show a form again, with the typed values and their errors."""

    def running_in(self, channel: str, thread_ts: str | None = None) -> list[StoredRun]:
        """The running requests of a channel, or of one thread."""

    async def agents(self) -> list[tuple[str, str]]:
        """Name and description of each agent."""

    async def examples(self) -> list[str]:
        """Example questions."""

    async def skills(self) -> list[tuple[str, str]]:
        """Name and description of each skill."""

    async def workflows(self) -> list[tuple[str, str]]:
        """Name and description of each workflow."""
