"""Progress of an ingest: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from ai_platform_engineering.knowledge_bases.rag.ingest.report import Progress
from ai_platform_engineering.text.plain_text import one_line

Show = Callable[[Progress], None]

_SECONDS_BETWEEN_LINES: Final = 5.0
_PATH_LENGTH: Final = 40


@contextmanager
def showing_progress(*, quiet: bool) -> Iterator[Show | None]:
    """Show progress on standard error. Standard output is for the result."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as bar:
            task = bar.add_task("", total=None, chunks="0", path="")

            def advance(progress: Progress) -> None:
                bar.update(
                    task,
                    completed=progress.documents,
                    total=progress.total,
                    chunks=f"{progress.chunks:,}",
                    path=_short(one_line(progress.path)),
                )

            yield advance
    else:
        yield _lines()


def _bar() -> Bar:
    return Bar(
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("documents, {task.fields[chunks]} chunks", markup=False),
        TimeRemainingColumn(),
        TextColumn("{task.fields[path]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )


def _lines() -> Show:
    last = monotonic()

    def line(progress: Progress) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            of = "" if progress.total is None else f" of {progress.total:,}"
            sys.stderr.write(f"{progress.documents:,}{of} documents, {progress.chunks:,} chunks\n")

    return line


def _short(path: str) -> str:
    """Shorten a path to its end, which is more informative than its beginning."""
    return path if len(path) <= _PATH_LENGTH else f"…{path[1 - _PATH_LENGTH :]}"
