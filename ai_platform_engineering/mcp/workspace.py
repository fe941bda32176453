"""The directories of one stdio server's process: an empty working directory, a separate HOME, and temporary files.

Relative paths and `~` of the server do not lead to the supervisor's files. The directories exist as long as the
session.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ai_platform_engineering.mcp.errors import NotSent


@dataclass(frozen=True, slots=True)
class ServerWorkspace:
    root: Path
    """Contains the other directories."""

    @property
    def directory(self) -> Path:
        """The working directory, empty at the start."""
        return self.root / "work"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        """The directory for temporary files."""
        return self.root / "tmp"


@contextmanager
def workspace(
    name: str, user_home: Path, shared: Iterable[str] = (), owner: tuple[int, int] | None = None
) -> Iterator[ServerWorkspace]:
    """A workspace in the temporary directory, which is removed at the end.

    `shared` are paths below `user_home` that are linked into the server's HOME if they exist. `owner` is the user and
    group id of the server, if it is another user.
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
        created = ServerWorkspace(root)
        for directory in (created.directory, created.home, created.temporary):
            directory.mkdir(mode=0o700)
        # npm treats the nearest parent with this directory as the project, and reads configuration and programs from
        # it. Without it, npm would search the temporary directory, where other users can write.
        (root / "node_modules").mkdir(mode=0o700)
        for path in shared:
            _share(user_home / path, created.home / path)
        if owner is not None:
            for owned in (root, *root.rglob("*")):
                os.chown(owned, *owner, follow_symlinks=False)
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
