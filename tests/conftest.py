from __future__ import annotations

import ctypes
import gc
import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck

from tests.certificates import trust_one_certificate
from tests.event_loops import CheckedEventLoop
from tests.forked_commands import forked_commands, is_possible
from tests.forks import MEASURED
from tests.ports import reserved_port
from tests.selection import Cost, ProcessStarts, longest_first
from tests.servers import Command, Completed

# How long an example takes says more about the machine than about the code. The examples are the same in every run, so
# that a failure comes from a change; `make properties` draws others.
hypothesis.settings.register_profile(
    "same-examples", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
hypothesis.settings.load_profile("same-examples")
hypothesis.settings.register_profile("other-examples", derandomize=False)

_MANY_PAGES = 30_000_000 // os.sysconf("SC_PAGE_SIZE")


def pytest_configure(config: pytest.Config) -> None:
    # Async tests, `asyncio.run` and loops in threads all get their loop from here.
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    for name in ("asyncio.new_event_loop", "asyncio.events.new_event_loop"):
        patch.setattr(name, CheckedEventLoop)
    trust_one_certificate(patch)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    # Modules and items live to the end. The collector would go through all of them again and again, and find nothing:
    # that takes longer than the collection.
    gc.disable()
    try:
        _import_one_part(session.config)
        return (yield)
    finally:
        gc.freeze()
        # With 700 new objects, the interpreter's default, it took a seventh of the CPU time of tests with whole apps.
        gc.set_threshold(20_000)
        gc.enable()


def _import_one_part(config: pytest.Config) -> None:
    """The workers of xdist import the same modules in the same order: in a new clone, each would compile all of them.
    So each worker begins with another part."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    folders = [config.invocation_params.dir / argument for argument in config.args]
    modules = [module for folder in folders for module in sorted(folder.rglob("test_*.py"))]
    begin, end = (len(modules) * part // workers for part in (number, number + 1))
    for module in modules[begin:end]:
        # pytest imports a module again that cannot be imported, and reports why.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(module.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    starts = ProcessStarts(session)
    for item in items:
        if item.get_closest_marker("process") is None and starts.of_item(item):
            item.add_marker(pytest.mark.process)


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_collection_modifyitems")
def pytest_begin_with_the_longest(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    result = yield
    # After the deselection: each worker of xdist gets one part of the remaining tests, and begins with its first.
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = longest_first(items, [*map(_cost, items)], workers)
    return result


def _cost(item: pytest.Item) -> Cost:
    if item.get_closest_marker("slow") is not None:
        return "slow"
    return "quick" if item.get_closest_marker("process") is None else "process"


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    # A fixture would give each test the marker `process`.
    starts = any(item.get_closest_marker("process") for item in getattr(session, "items", ()))
    with forked_commands() if starts and is_possible() else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    # Neither the garbage of a test with large documents or models nor the memory that glibc keeps for later would ever
    # go back to the system: a worker would grow to gigabytes.
    before = _resident_pages()
    result = yield
    if _resident_pages() - before > _MANY_PAGES and sys.platform == "linux":
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
    return result


def _resident_pages() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_bytes().split()[1]) if statm.exists() else 0


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """A test that runs a command in this process does not decide what later tests see of the log."""
    loggers = [logging.getLogger(), *map(logging.getLogger, ("a2a", "fastmcp", "httpx", "mcp", "uvicorn", "asyncio"))]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        # Setting a level clears a cache of every logger of the process.
        if logger.level != level:
            logger.setLevel(level)
    for handler in logging.getLogger().handlers[:]:
        if type(handler) is logging.StreamHandler:
            logging.getLogger().removeHandler(handler)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The variables of somebody who has configured nothing."""
    kept = {name: os.environ[name] for name in ("PATH", *MEASURED)}
    return {**kept, "HOME": str(tmp_path), "DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that refuses connections during the test, unless the test serves there."""
    with reserved_port() as port:
        yield port


@pytest.fixture
def platform_engineer(tmp_path: Path, environ: dict[str, str]) -> Command:
    """Runs the command in an empty directory with nothing configured but what is given."""

    def run(*arguments: object, **variables: str) -> Completed:
        return subprocess.run(
            [sys.executable, "-m", "ai_platform_engineering.cli", *map(str, arguments)],
            env={**environ, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
