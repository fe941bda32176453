"""The directories of one stdio server's process: an empty working directory and a separate HOME.

Relative paths and `~` of the server do not lead to the supervisor's files. The directories exist as long as the
session.
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
class ServerWorkspace:
    directory: Path
    """The working directory, empty at the start."""
    home: Path


@contextmanager
def workspace(name: str, user_home: Path, shared: Iterable[str] = ()) -> Iterator[ServerWorkspace]:
    """A workspace in the temporary directory, which is removed at the end.

    `shared` are paths below `user_home` that are linked into the server's HOME if they exist.
    """
    try:
        # Only the owner can enter this directory, so other users cannot reach its content.
        root = Path(tempfile.mkdtemp(prefix=f"platform-engineer-{name}-")).resolve()
    except OSError:
        raise NotSent(
            f"was not started because no directory could be created below {tempfile.gettempdir()}; "
            "set TMPDIR to a directory that is writable"
        ) from None
    try:
        created = ServerWorkspace(root / "work", root / "home")
        created.directory.mkdir(mode=0o700)
        created.home.mkdir(mode=0o700)
        # npm treats the nearest parent with this directory as the project, and reads configuration and programs from
        # it. Without it, npm would search the temporary directory, where other users can write.
        (root / "node_modules").mkdir(mode=0o700)
        for path in shared:
            _share(user_home / path, created.home / path)
        yield created
    finally:
        shutil.rmtree(root, ignore_errors=True)


def home_of(environ: Mapping[str, str]) -> Path:
    """The home directory of the user who runs the supervisor."""
    return Path(environ.get("HOME") or Path.home())


def _share(source: Path, link: Path) -> None:
    if source.exists():
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.symlink_to(source.absolute())
