"""The interface of the feedback stores, and the choice between a file and Postgres."""

from __future__ import annotations

from typing import Literal, Protocol

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import (
    FeedbackFile,
    FeedbackStoreError,
    feedback_path,
    read_newest,
)
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.settings import Settings, SettingsError

__all__ = ["FeedbackStore", "FeedbackStoreError", "newest_feedback", "open_feedback"]


class FeedbackStore(Protocol):
    """Opened on first use. The methods block on I/O and raise `FeedbackStoreError`: call them in a thread."""

    is_shared: bool
    """Whether feedback of other processes may wait here to be forwarded."""

    def store(self, feedback: Feedback) -> bool:
        """Store the feedback and return whether it is new. It replaces earlier feedback of the user on the answer."""

    def newest(self, limit: int) -> list[Feedback]:
        """The newest feedback first."""

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
    max_age_days = settings.event_log_max_age_days
    if settings.event_log == "postgres" and settings.event_log_postgres_dsn is not None:
        try:
            from ai_platform_engineering.multi_agents.platform_engineer.feedback.postgres import (  # noqa: PLC0415
                FeedbackAddress,
                PostgresFeedback,
            )
        except ModuleNotFoundError:
            raise SettingsError(
                f"EVENT_LOG=postgres needs psycopg, which is not installed: {install_command('postgres')}."
            ) from None
        return PostgresFeedback(FeedbackAddress(settings.event_log_postgres_dsn.get_secret_value()), max_age_days)
    return FeedbackFile(feedback_path(settings) if settings.event_log == "sqlite" else None, max_age_days)


def newest_feedback(settings: Settings, limit: int) -> list[Feedback]:
    """The newest stored feedback, also while servers write more. No file is created."""
    if settings.event_log != "postgres":
        return read_newest(feedback_path(settings), limit)
    store = open_feedback(settings)
    try:
        return store.newest(limit)
    finally:
        store.close()
