"""The interface of the feedback stores, and the choice between a file and Postgres."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal, Protocol

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import (
    FeedbackFile,
    FeedbackStoreError,
    check_up_file,
    feedback_path,
    read_newest,
)
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.checkup import IN_MEMORY, StoreCheckup

if TYPE_CHECKING:
    from ai_platform_engineering.multi_agents.platform_engineer.feedback.postgres import PostgresFeedback

__all__ = ["FeedbackStore", "FeedbackStoreError", "check_up_feedback", "newest_feedback", "open_feedback"]

_NAME: Final = "store of feedback"


class FeedbackStore(Protocol):
    """Opened on first use. The methods block on I/O and raise `FeedbackStoreError`: call them in a thread."""

    is_shared: bool
    """Whether feedback of other processes may wait here to be forwarded."""

    def store(self, feedback: Feedback) -> bool:
        """Store the feedback and return whether it is new. It replaces earlier feedback of the user on the answer."""

    def newest(self, limit: int, user: str | None = None) -> list[Feedback]:
        """The newest feedback first, of one user if it is given."""

    def begin_forwarding(self) -> bool:
        """False if another process is forwarding. It ends with `end_forwarding`, or with the process."""

    def end_forwarding(self) -> None:
        """Let another process forward."""

    def pending(self, limit: int) -> list[Feedback]:
        """Feedback that was not forwarded yet, oldest first."""

    def mark_done(self, feedback: Feedback, state: Literal["forwarded", "refused"]) -> None:
        """Stop forwarding this feedback, unless it was replaced in the meantime."""

    def close(self) -> None:
        """Close the connections. The next call opens them again."""


def open_feedback(settings: Settings) -> FeedbackStore:
    """Feedback is stored where tasks are stored, and for as long."""
    if settings.event_log == "postgres":
        return _in_postgres(settings)
    path = feedback_path(settings) if settings.event_log == "sqlite" else None
    return FeedbackFile(path, settings.event_log_max_age_days)


def _in_postgres(settings: Settings) -> PostgresFeedback:
    try:
        from ai_platform_engineering.multi_agents.platform_engineer.feedback.postgres import (  # noqa: PLC0415
            FeedbackAddress,
            PostgresFeedback,
        )
    except ModuleNotFoundError:
        raise SettingsError(
            f"EVENT_LOG=postgres needs psycopg, which is not installed: {install_command('postgres')}."
        ) from None
    dsn = settings.event_log_postgres_dsn
    return PostgresFeedback(FeedbackAddress(dsn.get_secret_value() if dsn else ""), settings.event_log_max_age_days)


async def check_up_feedback(settings: Settings) -> StoreCheckup | None:
    """The row of `platform-engineer doctor`."""
    match settings.event_log:
        case "memory":
            return StoreCheckup(_NAME, "memory", IN_MEMORY)
        case "sqlite":
            return await asyncio.to_thread(check_up_file, _NAME, feedback_path(settings))
        case "postgres":
            return await asyncio.to_thread(_check_up_database, settings)


def _check_up_database(settings: Settings) -> StoreCheckup:
    try:
        return _in_postgres(settings).check_up(_NAME)
    except (SettingsError, FeedbackStoreError) as error:
        return StoreCheckup(_NAME, "postgres", "not usable").failed(str(error))


def newest_feedback(settings: Settings, limit: int) -> list[Feedback]:
    """The newest stored feedback, also while servers write more. No file is created."""
    if settings.event_log != "postgres":
        return read_newest(feedback_path(settings), limit)
    store = open_feedback(settings)
    try:
        return store.newest(limit)
    finally:
        store.close()
