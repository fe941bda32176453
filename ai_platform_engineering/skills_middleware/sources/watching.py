"""Watches a directory for changes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 1
_POLL_SECONDS: Final = 10


async def directory_changes(path: Path) -> AsyncGenerator[None]:
    """Yield after each burst of changes below `path`, and once when watching has started.

    Watching runs in a thread, because registering thousands of folders would block the event loop.
    """
    loop = asyncio.get_running_loop()
    changed, stopped = asyncio.Event(), threading.Event()
    thread = threading.Thread(
        target=_watch, args=(path, stopped, lambda: loop.call_soon_threadsafe(changed.set)), name="skills-watcher"
    )
    thread.start()
    try:
        while True:
            await changed.wait()
            changed.clear()
            yield
    finally:
        stopped.set()
        await asyncio.to_thread(thread.join)


def _watch(path: Path, stopped: threading.Event, report: Callable[[], object]) -> None:
    """Watch until `stopped` is set. A directory that is removed, mounted or replaced is watched again.

    If the operating system cannot watch it, for example because of its limit of watched folders, a change is reported
    at a fixed interval.
    """
    from watchfiles import watch  # noqa: PLC0415 - only where a directory is configured

    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    while not stopped.is_set():
        identity = _identity(path)
        try:
            begun = False
            for changes in watch(path, stop_event=stopped, rust_timeout=_CHECK_SECONDS * 1000, yield_on_timeout=True):
                replaced = _identity(path) != identity
                # The first report covers changes that were made before watching started.
                if changes or replaced or not begun:
                    report()
                begun = True
                if replaced:
                    break
        except FileNotFoundError:
            stopped.wait(_CHECK_SECONDS)
        except (OSError, RuntimeError) as error:
            logger.warning("%s cannot be watched (%s). It is polled every %d s instead.", path, error, _POLL_SECONDS)
            stopped.wait(_POLL_SECONDS)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
