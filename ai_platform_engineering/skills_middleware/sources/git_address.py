"""The entries of SKILLS_GIT: repository, ref and folder."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from ai_platform_engineering.utils.redact import MASK, redact

DEFAULT_BRANCH: Final = "HEAD"

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"(?![-/.])(?!.*(?:\.\.|//|@\{))[\w./+-]{1,200}(?<![/.])")
_SCP: Final = re.compile(r"(?P<authority>\w[\w.-]*@\w[\w.-]*):(?P<path>[^/:].*)")
_UNSEEN: Final = re.compile(r"[\s\x00-\x1f\x7f]")


class GitAddressError(ValueError):
    """An address cannot be used. The text is a sentence without credentials."""


@dataclass(frozen=True, slots=True)
class GitAddress:
    """`address` has no credentials: `user` and `password` are passed to Git separately."""

    address: str
    ref: str = DEFAULT_BRANCH
    folder: str = ""
    user: str | None = None
    password: str | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether the ref is a commit, so that it never changes."""
        return _COMMIT.fullmatch(self.ref) is not None

    @property
    def host(self) -> str:
        return (urlsplit(self.address).hostname or "") if "://" in self.address else ""

    @property
    def digest(self) -> str:
        """A digest of repository and ref, which names the local copy."""
        return hashlib.sha256(f"{self.address}\0{self.ref}".encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return f"{self.address}#{self.folder}" if self.folder else self.address


def parse_git_address(entry: str) -> GitAddress:
    """`address`, `address@ref` or `address@ref#folder`; raises `GitAddressError`."""
    text, _, folder = entry.strip().partition("#")
    if not text or text.startswith("-") or _UNSEEN.search(entry.strip()):
        raise _refused(entry, "it is not an address of a repository")
    start, user, password = "", None, None
    if "://" in text:
        start, text, user, password = _split_url(entry, text)
    elif found := _SCP.fullmatch(text):
        start, text = f"{found['authority']}:", found["path"]
    elif not text.startswith("/"):
        raise _refused(entry, "it has to begin with https://, ssh://, file:// or /, or look like git@host:path")
    path, at, ref = text.rpartition("@")
    if not at:
        path, ref = text, DEFAULT_BRANCH
    if not path.strip("/"):
        raise _refused(entry, "the path of the repository is missing")
    if not _REF.fullmatch(ref):
        raise _refused(entry, f"{ref!r} after the @ is not the name of a branch or a tag, or a commit")
    parts = [part for part in folder.split("/") if part]
    if ".." in parts or "\\" in folder:
        raise _refused(entry, "the folder after the # has to be inside the repository")
    return GitAddress(f"{start}{path}", ref, "/".join(parts), user, password)


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split_url(entry: str, text: str) -> tuple[str, str, str | None, str | None]:
    """The part of an address before the path, the path, the user and the password."""
    try:
        url = urlsplit(text)
        host, _ = url.hostname or "", url.port
    except ValueError:
        raise _refused(entry, "its host or port cannot be read") from None
    if host.startswith("-"):
        raise _refused(entry, "its host cannot be read")
    if url.query:
        raise _refused(entry, "an address of a repository has no ?")
    authority = url.netloc.rpartition("@")[2]
    match url.scheme:
        case "https" | "http" if not host:
            raise _refused(entry, "it has no host")
        case "http" if not is_loopback(host):
            raise _refused(entry, "http:// is allowed on this machine only; use https://")
        case "https" | "http":
            user = unquote(url.username) if url.username else None
            password = unquote(url.password) if url.password else None
            return urlunsplit((url.scheme, authority, "", "", "")), url.path, user, password
        case "ssh" if host:
            if url.password:
                raise _refused(entry, "ssh:// takes no password; use a key")
            user_part = f"{url.username}@" if url.username else ""
            if user_part.startswith("-"):
                raise _refused(entry, "its user cannot be read")
            return f"ssh://{user_part}{authority}", url.path, None, None
        case "file" if not host:
            return "file://", url.path, None, None
        case _:
            raise _refused(entry, f"{url.scheme}:// is not supported; use https://, ssh:// or file://")


def _refused(entry: str, reason: str) -> GitAddressError:
    return GitAddressError(f"{redacted_entry(entry)} cannot be used as a repository of skills: {reason}.")


def redacted_entry(entry: str) -> str:
    """An entry without credentials, also if it cannot be parsed."""
    text = redact(" ".join(entry.split()))
    # An address without a scheme may also contain a password: user:password@host/path.
    return re.sub(r"^[^/@\s]*:[^/@\s]*@", f"{MASK}@", text)
