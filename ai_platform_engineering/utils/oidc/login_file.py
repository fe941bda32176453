"""The sign-ins of this user at supervisors, in one file that only the user can read."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.private_files import create_private_file, make_private_directory

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Login:
    """`url` is the supervisor, as `supervisor_key` writes it. `expires_at` is the end of the access token, in seconds
    since 1970."""

    url: str
    issuer: str
    client_id: str
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: float


def supervisor_key(url: str) -> str:
    """The URL of a supervisor in normal form: without a slash at the end, scheme and host in lower case."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/"), "", ""))


class LoginFile:
    """One login per supervisor. Raises `SettingsError` if the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, url: str) -> Login | None:
        key = supervisor_key(url)
        return next((login for login in self._read() if login.url == key), None)

    def save(self, login: Login) -> None:
        """Store a login, in place of the earlier one. Hold the lock."""
        self._write([*(other for other in self._read() if other.url != login.url), login])

    def remove(self, url: str) -> Login | None:
        """Delete a login and return it. Hold the lock."""
        found = self.find(url)
        if found is not None:
            self._write([other for other in self._read() if other.url != found.url])
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from changing the file: a refresh token that two of them use ends the login."""
        try:
            lock = self._path.with_name(f"{self._path.name}.lock")
            create_private_file(lock)
            handle = lock.open("rb")
        except OSError as error:
            raise self._unusable(error.strerror) from None
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def _read(self) -> list[Login]:
        try:
            content: Any = json.loads(self._path.read_text(encoding="utf-8"))
            return [Login(**fields) for fields in content["logins"]]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise self._unusable(error.strerror) from None
        except (ValueError, TypeError, KeyError):
            raise self._unusable("it has no valid content; delete it and sign in again") from None

    def _write(self, logins: list[Login]) -> None:
        """Replace the file at once, so that a reader never sees half of it."""
        draft = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        try:
            make_private_directory(self._path.parent)
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
                json.dump({"version": _VERSION, "logins": [asdict(login) for login in logins]}, file, indent=2)
            draft.replace(self._path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise self._unusable(error.strerror) from None

    def _unusable(self, reason: str | None) -> SettingsError:
        return SettingsError(f"{self._path} cannot be used: {reason}. LOGINS_FILE chooses another file.")
