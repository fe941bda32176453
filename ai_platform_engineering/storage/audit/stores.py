"""The audit record that the settings ask for: where the tasks are in Postgres, it is too; otherwise it is a file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from ai_platform_engineering.audit.log import NO_AUDIT, Audit, AuditLog, AuditStore, AuditUnavailableError
from ai_platform_engineering.audit.record import Seal
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.installation import install_command
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.audit.file import AuditFile
from ai_platform_engineering.storage.checkup import StoreCheckup

_NAME: Final = "audit record"
COMMAND_LINE: Final = Principal(via="command line")
"""The principal of a command that uses the stores without a server."""
_DAY_NS: Final = 86_400 * 10**9


class AuditRecord(AuditStore, Protocol):
    """A store that can also be read."""

    def head(self) -> str | None:
        """The head that is stored beside the entries; None if there is none. Read it before the entries."""

    def open_lines(self, *, newest_first: bool = False) -> AbstractContextManager[Iterator[str]]:
        """The entries."""

    def check_up(self, name: str) -> StoreCheckup:
        """The row of `platform-engineer doctor`."""


def audit_record(settings: Settings, agent: str = SUPERVISOR) -> AuditRecord:
    seal, retention_ns = seal_of(settings), int(settings.audit_retention_days * _DAY_NS)
    if settings.event_log != "postgres":
        return AuditFile(audit_file(settings, agent), seal, retention_ns)
    try:
        from ai_platform_engineering.storage.audit.postgres import AuditAddress, PostgresAudit  # noqa: PLC0415
    except ModuleNotFoundError:
        raise SettingsError(
            f"EVENT_LOG=postgres needs psycopg, which is not installed: {install_command('postgres')}."
        ) from None
    dsn = settings.event_log_postgres_dsn
    return PostgresAudit(AuditAddress(dsn.get_secret_value() if dsn else ""), agent, seal, retention_ns)


def audit_log(settings: Settings, agent: str = SUPERVISOR) -> AuditLog | None:
    """The log of the server of `agent`; None with AUDIT=off."""
    if not settings.audit:
        return None
    prunes = settings.audit_retention_days > 0
    return AuditLog(audit_record(settings, agent), required=settings.audit_required, prunes=prunes)


def audit_file(settings: Settings, agent: str = SUPERVISOR) -> Path:
    return settings.data_dir / ("audit.db" if agent == SUPERVISOR else f"audit-{agent}.db")


def seal_of(settings: Settings) -> Seal:
    return Seal(settings.audit_key.get_secret_value() if settings.audit_key is not None else None)


async def check_up_audit(settings: Settings) -> StoreCheckup | None:
    """The row of `platform-engineer doctor`; None with AUDIT=off."""
    if not settings.audit:
        return None
    try:
        return await asyncio.to_thread(audit_record(settings).check_up, _NAME)
    except (SettingsError, AuditUnavailableError) as error:
        return StoreCheckup(_NAME, "postgres", "not usable").failed(str(error))


@contextmanager
def recording(settings: Settings) -> Iterator[Audit]:
    """The supervisor's record for a command that changes its data without a server."""
    log = audit_log(settings)
    if log is None:
        yield NO_AUDIT
        return
    try:
        yield log
    finally:
        log.close()
