"""The rows of the doctor about stores, on the command line."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.audit.record import AuditFact, Seal
from ai_platform_engineering.budgets.usage import ONE_RUN, UsageRow
from ai_platform_engineering.cli.doctor_report import Report, show
from ai_platform_engineering.integrations.slack_bot.store import open_store
from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import FeedbackFile
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.multi_agents.platform_engineer.feedback.store import open_feedback
from ai_platform_engineering.sandbox.store import SandboxStore
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.audit.file import AuditFile
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.event_log.checkup import check_up_event_log
from ai_platform_engineering.storage.push.receiver_file import ReceiverFile
from ai_platform_engineering.storage.usage.file import UsageFile
from ai_platform_engineering.storage.usage.store import UsageBatch
from ai_platform_engineering.utils.a2a_common.server.push_configs import open_receivers
from tests.fixtures.store_files import STORES
from tests.servers import Command, CommandLine, Completed
from tests.services.postgres import PostgresServer, new_database

pytest_plugins = ("tests.services.fixtures",)

SECRET = "hunter2hunter2"
FILES = {
    "event log": "tasks.db",
    "store of conversations": "conversations.db",
    "knowledge base": "knowledge.db",
    "store of skills": "skills.db",
    "store of feedback": "feedback.sqlite",
    "sandbox": "sandbox.db",
    "audit record": "audit.db",
    "counts of usage": "usage.db",
    "store of the Slack bot": "slack.sqlite",
}


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data directory with every file, those of conversations and tasks in the formats of release 0.1.0."""
    directory = tmp_path / "data"
    directory.mkdir()
    for stored in (STORES / "0.1.0").iterdir():
        if stored.name in FILES.values():
            shutil.copyfile(stored, directory / stored.name)
    feedback = FeedbackFile(directory / "feedback.sqlite")
    feedback.store(Feedback("trace", "up", "slack", 1))
    feedback.close()
    with SandboxStore(directory / "sandbox.db").read():
        pass
    with closing(AuditFile(directory / "audit.db", Seal())) as record:
        record.append([AuditFact("sign_in")])
    with closing(UsageFile(directory / "usage.db")) as counts:
        counts.add([UsageBatch("a", [UsageRow("2026-03-01", "", "", ONE_RUN)])])
    return directory


def rows(completed: Completed) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(completed.stdout)["stores"]}


def test_files_that_do_not_exist_are_no_problem(platform_engineer: Command, tmp_path: Path) -> None:
    completed = platform_engineer("doctor", "--offline", "--json")
    found = rows(completed)
    assert completed.returncode == 0
    # Nothing tells whether a Slack bot will run here.
    assert found.keys() == FILES.keys() - {"store of the Slack bot"}
    assert {row["usable"] for row in found.values()} == {None}
    assert not (tmp_path / "data/tasks.db").exists()
    assert "tasks.db (not created yet)" in platform_engineer("doctor", "--offline").stdout


def test_stores_that_can_be_used(platform_engineer: Command, data_dir: Path) -> None:
    completed = platform_engineer("doctor", "--offline", "--json")
    found = rows(completed)
    assert completed.returncode == 0
    for name, file in FILES.items():
        row = found[name]
        assert (row["kind"], row["place"], row["usable"], row["problem"]) == (
            "sqlite",
            str(data_dir / file),
            True,
            None,
        )
        assert row["facts"]["bytes"] == (data_dir / file).stat().st_size
    assert found["event log"]["facts"]["format"] == 1
    counted = {name: [*row["facts"].values()][1] for name, row in found.items() if len(row["facts"]) > 1}
    assert all(count > 0 for count in counted.values())
    assert counted.keys() >= FILES.keys() - {"sandbox", "store of conversations"}


async def test_a_store_that_a_running_server_has_is_usable(platform_engineer: Command, data_dir: Path) -> None:
    async with CommandLine(["serve", "--port", "0"], {"DATA_DIR": str(data_dir)}):
        completed = platform_engineer("doctor", "--offline", "--json")
    row = rows(completed)["event log"]
    assert (completed.returncode, row["usable"], row["facts"]["in_use"]) == (0, True, True)


def corrupt(file: Path) -> None:
    file.write_bytes(b"not a database, but long enough to be taken for one" * 100)


def of_a_later_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")


def unreadable(file: Path) -> None:
    # The tests may run as root, who can read every file.
    file.unlink()
    file.mkdir()


@pytest.mark.long
@pytest.mark.parametrize("harm", [corrupt, of_a_later_version, unreadable])
def test_a_broken_file_is_reported_with_the_way_out(
    platform_engineer: Command, data_dir: Path, harm: Callable[[Path], None]
) -> None:
    for file in FILES.values():
        harm(data_dir / file)
    completed = platform_engineer("doctor", "--offline", "--json")
    assert completed.returncode == 1
    for name, row in rows(completed).items():
        assert row["usable"] is False, name
        assert str(data_dir / FILES[name]) in row["problem"]
        assert "DATA_DIR" in row["problem"] or "sandbox reset" in row["problem"]
    text = platform_engineer("doctor", "--offline").stdout
    assert all(f"the {name}" in text.splitlines()[-1] for name in FILES)
    for row in rows(completed).values():
        assert text.count(row["problem"]) == 1


@pytest.mark.long
def test_servers_that_cannot_be_reached(platform_engineer: Command, unused_port: int) -> None:
    address = f"postgresql://me:{SECRET}@127.0.0.1:{unused_port}/company"
    variables = ("RAG_DATABASE_URL", "SKILLS_DATABASE_URL", "LANGGRAPH_CHECKPOINT_POSTGRES_DSN")
    completed = platform_engineer("doctor", "--offline", "--json", **dict.fromkeys(variables, address))
    found = rows(completed)
    assert completed.returncode == 1
    for name, variable in zip(("knowledge base", "store of skills", "store of conversations"), variables, strict=True):
        row = found[name]
        assert (row["kind"], row["place"], row["usable"]) == ("postgres", f"127.0.0.1:{unused_port}/company", False)
        assert f"Check that the server is running, and the host, user and password in {variable}." in row["problem"]
    assert SECRET not in completed.stdout + completed.stderr


@pytest.mark.long
def test_servers_that_can_be_used(platform_engineer: Command, postgres: PostgresServer) -> None:
    with new_database(postgres.address()) as address:
        variables = dict.fromkeys(("SKILLS_DATABASE_URL", "LANGGRAPH_CHECKPOINT_POSTGRES_DSN"), address)
        completed = platform_engineer("doctor", "--offline", "--json", **variables)
    assert completed.returncode == 0
    for name in ("store of skills", "store of conversations"):
        row = rows(completed)[name]
        assert (row["kind"], row["usable"], row["problem"]) == ("postgres", True, None)


@pytest.mark.long
def test_shared_state_that_can_be_used(platform_engineer: Command, database: str, unused_port: int) -> None:
    names = {"store of feedback", "receivers of push notifications", "store of the Slack bot"}
    variables = {"EVENT_LOG": "postgres", "SLACK_SESSIONS": "postgres"}
    addresses = {f"{name}_POSTGRES_DSN": database for name in variables}
    settings = load_settings({**variables, **addresses}, None)

    found = rows(platform_engineer("doctor", "--offline", "--json", **variables, **addresses))
    assert {(found[name]["kind"], found[name]["usable"]) for name in names} == {("postgres", None)}
    with closing(open_feedback(settings)) as feedback, closing(open_receivers(settings)) as receivers:
        feedback.store(Feedback("trace", "up", "slack", time.time_ns()))
        assert receivers.unfinished() == []
    open_store(settings).close()
    found = rows(platform_engineer("doctor", "--offline", "--json", **variables, **addresses))
    assert {found[name]["usable"] for name in names} == {True}
    assert found["store of feedback"]["facts"] == {"entries": 1, "format": 1}

    nowhere = dict.fromkeys(addresses, f"postgresql://ann:{SECRET}@127.0.0.1:{unused_port}/company")
    completed = platform_engineer("doctor", "--offline", "--json", **variables, **nowhere)
    found = rows(completed)
    assert {found[name]["usable"] for name in names} == {False}
    assert all("Check that the server is running" in found[name]["problem"] for name in names)
    assert SECRET not in completed.stdout + completed.stderr


def test_a_file_of_receivers(platform_engineer: Command, tmp_path: Path) -> None:
    path = tmp_path / "data" / "push.db"
    with closing(ReceiverFile(path)) as receivers:
        receivers.delete("none")
    row = rows(platform_engineer("doctor", "--offline", "--json"))["receivers of push notifications"]
    assert (row["usable"], row["facts"]["receivers"], row["facts"]["format"]) == (True, 0, 1)
    path.write_bytes(b"this is not a database" * 100)
    row = rows(platform_engineer("doctor", "--offline", "--json"))["receivers of push notifications"]
    assert row["usable"] is False
    assert "Move the file away" in row["problem"]


def test_stores_in_memory(platform_engineer: Command) -> None:
    completed = platform_engineer("doctor", "--offline", "--json", EVENT_LOG="memory", CONVERSATIONS="memory")
    memory = {name for name, row in rows(completed).items() if row["kind"] == "memory"}
    assert (completed.returncode, memory) == (0, {"event log", "store of conversations", "store of feedback"})


async def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = await check_up_event_log(load_settings({"DATA_DIR": str(tmp_path / "file/data")}, None))
    assert found is not None
    assert found.problem
    assert "it cannot be written" in found.problem
    assert "DATA_DIR" in found.problem


def test_the_rows_fit_a_terminal_of_80_columns() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    place = "/var/lib/platform-engineer/a/directory/with/a/long/name/[data]/tasks.db"
    facts = {"bytes": 1_250_000, "in_use": True, "tasks": 1, "format": 2}
    stores = (StoreCheckup("event log", "sqlite", place, True, facts),)
    report = Report("1", "offline", True, True, "/data", "writes", (), (), stores=stores)
    terminal, plain = Terminal(), io.StringIO()
    show(report, terminal, width=80)
    show(report, plain)
    assert f"{place} (1.2 MB, in use by a running process, 1 task, format 2)" in plain.getvalue()
    assert "1 task" in terminal.getvalue()
    assert not any("…" in line for line in terminal.getvalue().splitlines())
