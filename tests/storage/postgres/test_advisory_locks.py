from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from ai_platform_engineering.storage.postgres.advisory_locks import AdvisoryLocks
from tests.services.environment import ROOT
from tests.services.postgres import disconnect_all
from tests.storage.postgres.test_schema import PartsAddress, PartsError

pytest_plugins = ("tests.services.fixtures",)


def acquired(locks: AdvisoryLocks, name: str) -> bool:
    """Waits, because the server notices the end of a process a moment later."""
    return any(locks.acquire(name) for _ in range(10_000))


def test_of_several_processes_one_has_a_lock(database: str) -> None:
    ours, theirs = (AdvisoryLocks(PartsAddress(database), "counting") for _ in range(2))
    other = AdvisoryLocks(PartsAddress(database), "cleaning")
    assert ours.acquire("bolts")
    assert not theirs.acquire("bolts")
    assert theirs.acquire("nuts")
    assert other.acquire("bolts")
    ours.release("bolts")
    assert theirs.acquire("bolts")
    theirs.close()
    assert acquired(ours, "bolts")
    assert acquired(ours, "nuts")
    ours.close()
    other.close()


HOLDING = """
import sys
from ai_platform_engineering.storage.postgres.advisory_locks import AdvisoryLocks
from tests.storage.postgres.test_schema import PartsAddress
locks = AdvisoryLocks(PartsAddress(sys.argv[1]), "counting")
print(locks.acquire("bolts"), flush=True)
sys.stdin.read()
"""


def test_the_locks_of_a_killed_process_are_free(database: str) -> None:
    ours = AdvisoryLocks(PartsAddress(database), "counting")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, database],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        assert not ours.acquire("bolts")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert acquired(ours, "bolts")
    ours.close()


def test_a_lost_connection_is_reported_once_and_replaced(database: str) -> None:
    locks = AdvisoryLocks(PartsAddress(database), "counting")
    assert locks.acquire("bolts")
    disconnect_all(database)
    with pytest.raises(PartsError, match="cannot be used to store parts"):
        locks.acquire("nuts")
    assert acquired(locks, "bolts")
    locks.close()
