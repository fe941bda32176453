"""The stores of usage, one contract for all."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.budgets.usage import Usage, UsageRow
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.usage.store import UsageBatch, UsageStore, UsageStoreError
from ai_platform_engineering.storage.usage.stores import check_up_usage, usage_file, usage_store

pytest_plugins = ("tests.services.fixtures",)

JANE = UsageRow("2026-03-01", "token:jane", "gpt", Usage(calls=1, input_tokens=10, output_tokens=5, cost=7))
RUN = UsageRow("2026-03-01", "token:jane", "", Usage(runs=1, run_ms=1500))
JOE = UsageRow("2026-03-02", "token:joe", "gpt", Usage(calls=1, unreported=1))


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[UsageStore]:
    environ = {"EVENT_LOG": request.param, "DATA_DIR": str(tmp_path)}
    if request.param == "postgres":
        environ["EVENT_LOG_POSTGRES_DSN"] = request.getfixturevalue("database")
    with closing(usage_store(load_settings(environ, None))) as opened:
        yield opened


def test_batches_add_up_and_a_repeated_one_adds_nothing(store: UsageStore) -> None:
    assert store.totals("2026-03-01", ["token:jane"]) == {}
    first = UsageBatch("a", [JANE, RUN])
    store.add([first, UsageBatch("b", [JANE, JOE])])
    store.add([first, UsageBatch("c", [RUN])])
    twice = Usage(calls=2, input_tokens=20, output_tokens=10, cost=14)
    assert store.totals("2026-03-01", ["token:jane", "token:joe"]) == {"token:jane": twice + Usage(runs=2, run_ms=3000)}
    runs = UsageRow("2026-03-01", "token:jane", "", Usage(runs=2, run_ms=3000))
    assert store.rows("2026-03-01") == [runs, UsageRow("2026-03-01", "token:jane", "gpt", twice), JOE]
    assert store.rows("2026-03-02") == store.rows("2026-03-01", ["token:joe"]) == [JOE]


def test_runs_in_progress_are_limited_per_scope(store: UsageStore) -> None:
    limits = {"token:jane": 2, "group:sre": 3}
    assert not store.activate("t1", limits)
    assert not store.activate("t1", limits), "a task is counted once"
    assert not store.activate("t2", {"token:joe": None, "group:sre": None})
    assert not store.activate("t3", limits)
    assert store.activate("t4", limits) == {"token:jane": 2, "group:sre": 3}
    assert not store.activate("t5", dict.fromkeys(limits)), "an answer to a form is not limited"
    store.deactivate("t5")
    store.deactivate("t1")
    assert not store.activate("t4", limits)


async def test_the_file_is_private_and_the_doctor_reads_it(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    with closing(usage_store(settings)) as store:
        store.add([UsageBatch("a", [JANE, JOE])])
    assert stat.S_IMODE(usage_file(settings).stat().st_mode) == 0o600
    found = await check_up_usage(settings)
    assert found is not None
    assert found.problem is None
    usage_file(settings).write_bytes(b"no database" * 100)
    with closing(usage_store(settings)) as store, pytest.raises(UsageStoreError, match="Move the file away"):
        store.rows("2026-03-01")
