"""The directories of one stdio server's process: an empty working directory and a HOME of its own.

A server that resolves a relative path or `~` finds nothing of the supervisor's there. The directories live as long as
the session.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ai_platform_engineering.mcp.errors import NotSent


@dataclass(frozen=True, slots=True)
class Workspace:
    directory: Path
    """The working directory, empty at the start."""
    home: Path


@contextmanager
def workspace(name: str, user_home: Path, shared: Iterable[str] = ()) -> Iterator[Workspace]:
    """A workspace in the temporary directory, removed at the end.

    `shared` are paths below `user_home` that the server finds below its own HOME, where they exist.
    """
    try:
        # Only the owner can enter it, so neither can other users reach what is inside.
        root = Path(tempfile.mkdtemp(prefix=f"platform-engineer-{name}-")).resolve()
    except OSError:
        raise NotSent(
            f"was not started because no directory could be created below {tempfile.gettempdir()}; "
            "set TMPDIR to a directory that is writable"
        ) from None
    try:
        made = Workspace(root / "work", root / "home")
        made.directory.mkdir(mode=0o700)
        made.home.mkdir(mode=0o700)
        # npm takes the nearest parent with this directory for the project, and reads configuration and programs from
        # it. Without it npm would look in the temporary directory, where other users may write.
        (root / "node_modules").mkdir(mode=0o700)
        for path in shared:
            _share(user_home / path, made.home / path)
        yield made
    finally:
        shutil.rmtree(root, ignore_errors=True)


def home_of(environ: Mapping[str, str]) -> Path:
    """The home directory of the user who runs the supervisor."""
    return Path(environ.get("HOME") or Path.home())


def _share(source: Path, link: Path) -> None:
    if source.exists():
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.symlink_to(source.absolute())
