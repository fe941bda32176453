"""The entries of the audit record: each has the hash of the one before it, so a change of the record is found.

An entry has digests and names only: no arguments of tools, no messages, no credentials.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self

from ai_platform_engineering.identity.principal import ANONYMOUS, Principal

Kind = Literal[
    "sign_in",
    "sign_in_refused",
    "denied",
    "approval_requested",
    "approval_decided",
    "tool_call_started",
    "tool_call_finished",
    "policy_changed",
    "conversation_shared",
    "data_deleted",
    "entries_lost",
    "entries_pruned",
    "record_cut",
]
"""`sign_in` is also the first use of a key or token from an address. The last three are about the record itself."""

Outcome = Literal["", "ok", "failed", "unknown", "approved", "edited", "rejected"]

GENESIS: Final = "0" * 64
"""The previous hash of the first entry."""

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
_MAX_LENGTH: Final = 300
_KEY_ID_LENGTH: Final = 16
_ENTRY_FIELDS: Final = frozenset({"seq", "facts", "previous", "key", "hash"})


class EntryError(ValueError):
    """A line is not an entry in its canonical form."""


@dataclass(frozen=True, slots=True)
class AuditFact:
    """One thing that happened. Empty values are left out of the entry.

    `arguments` is a digest. `target` names the affected thing, for example a deleted conversation. `count` is the
    number of repetitions, or of entries. `anchor` is the hash of the last deleted entry.
    """

    kind: Kind
    principal: Principal = ANONYMOUS
    task: str = ""
    conversation: str = ""
    agent: str = ""
    tool: str = ""
    call: str = ""
    arguments: str = ""
    outcome: Outcome = ""
    reason: str = ""
    address: str = ""
    target: str = ""
    count: int = 0
    anchor: str = ""
    time_ns: int = field(default_factory=time.time_ns)

    def facts(self) -> dict[str, Any]:
        """The fact as a JSON object with bounded, printable values."""
        who = self.principal
        texts = {
            "time": iso_time(self.time_ns),
            "kind": self.kind,
            "verified_by": who.verified_by,
            "subject": who.subject or "",
            "via": who.via or "",
            "task": self.task,
            "conversation": self.conversation,
            "agent": self.agent,
            "tool": self.tool,
            "call": self.call,
            "arguments": self.arguments,
            "outcome": self.outcome,
            "reason": self.reason,
            "address": self.address,
            "target": self.target,
            "anchor": self.anchor,
        }
        found: dict[str, Any] = {name: _neutral(text) for name, text in texts.items() if text}
        return {**found, "count": self.count} if self.count else found


def iso_time(time_ns: int) -> str:
    """The time in UTC. Times of this form are ordered as texts."""
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def arguments_digest(arguments: Mapping[str, Any]) -> str:
    """The SHA-256 digest of the arguments as canonical JSON."""
    return f"sha256:{hashlib.sha256(canonical(arguments).encode()).hexdigest()}"


def canonical(value: object) -> str:
    """The one JSON text of `value`: sorted keys, no spaces, ASCII only."""
    return _ENCODER.encode(value)


def _neutral(text: str) -> str:
    if not text.isprintable():
        text = "".join(character if character.isprintable() else " " for character in text)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


class Seal:
    """Hashes entries: with SHA-256, or with HMAC-SHA-256 if there is a key. `id` identifies the key; empty without."""

    def __init__(self, key: str | None = None) -> None:
        self._key = key.encode() if key else None
        self.id = self.hash("audit key")[:_KEY_ID_LENGTH] if key else ""

    def hash(self, text: str) -> str:
        if self._key is None:
            return hashlib.sha256(text.encode()).hexdigest()
        return hmac.digest(self._key, text.encode(), "sha256").hex()


@dataclass(frozen=True, slots=True)
class Entry:
    """`key` is the id of the key in the hash; empty if it has none."""

    seq: int
    facts: Mapping[str, Any]
    previous: str
    key: str
    hash: str

    @classmethod
    def sealed(cls, seq: int, facts: Mapping[str, Any], previous: str, seal: Seal) -> Self:
        entry = cls(seq, facts, previous, seal.id, "")
        return cls(seq, facts, previous, seal.id, seal.hash(entry.hashed_text()))

    @classmethod
    def read(cls, line: str) -> Self:
        """Raises `EntryError` unless the line is exactly what `line()` returns."""
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EntryError(line) from error
        match found:
            case {"seq": int(), "facts": {}, "previous": str(), "key": str(), "hash": str()} if (
                found.keys() == _ENTRY_FIELDS and canonical(found) == line
            ):
                return cls(**found)
            case _:
                raise EntryError(line)

    def line(self) -> str:
        return canonical({**self._content(), "hash": self.hash})

    def hashed_text(self) -> str:
        return canonical(self._content())

    def _content(self) -> dict[str, Any]:
        return {"seq": self.seq, "facts": self.facts, "previous": self.previous, "key": self.key}


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a record. A copy outside of the record shows that its end was cut off."""

    seq: int = 0
    hash: str = GENESIS

    @classmethod
    def of(cls, entry: Entry | None) -> Self:
        """The head of a record whose last entry is `entry`."""
        return cls(entry.seq, entry.hash) if entry is not None else cls()

    def line(self, seal: Seal) -> str:
        content = {"head": self.seq, "of": self.hash, "key": seal.id}
        return canonical({**content, "mac": seal.hash(canonical(content))})

    @classmethod
    def read(cls, line: str, seal: Seal) -> Self:
        """Raises `EntryError` if the line was changed, or was written with another key."""
        try:
            found = json.loads(line)
        except ValueError as error:
            raise EntryError(line) from error
        match found:
            case {"head": int(seq), "of": str(entry_hash)}:
                head = cls(seq, entry_hash)
                if hmac.compare_digest(head.line(seal).encode(), line.encode()):
                    return head
        raise EntryError(line)


def chained(head: Head, facts: Iterable[AuditFact], seal: Seal) -> Iterator[Entry]:
    """The entries that follow `head`."""
    seq, previous = head.seq, head.hash
    for fact in facts:
        seq += 1
        entry = Entry.sealed(seq, fact.facts(), previous, seal)
        previous = entry.hash
        yield entry


def cut_fact(last: Entry | None, stored_head: str | None, seal: Seal) -> AuditFact | None:
    """The fact that a record does not end where its stored head says, found when a process opens it."""
    if stored_head is None:
        return None if last is None else AuditFact("record_cut", reason="its head was missing when it was opened")
    # Entries of the time before the key have a head without a key.
    for accepted in (seal, *([] if last is not None and last.key else [Seal()])):
        try:
            return early_end(last, Head.read(stored_head, accepted))
        except EntryError:
            continue
    return AuditFact("record_cut", reason="its head did not fit when it was opened")


def early_end(last: Entry | None, written: Head) -> AuditFact | None:
    """The fact that a record does not have the entry `written` any more, or has another one as its last."""
    end = Head.of(last)
    if written.seq > end.seq:
        reason = f"it ended with entry {end.seq}, though entry {written.seq} had been written"
        return AuditFact("record_cut", count=written.seq - end.seq, reason=reason)
    if written.seq == end.seq and written != end:
        return AuditFact("record_cut", reason=f"entry {end.seq} was replaced")
    return None


def prunable(entries: Iterable[Entry], retention_ns: int) -> Head | None:
    """The last of the leading entries that are older than the retention; None if there is none.

    The newest entry stays: the record continues from it.
    """
    limit = iso_time(time.time_ns() - retention_ns)
    pruned = before = None
    for entry in entries:
        pruned = before
        if entry.facts.get("time", limit) >= limit:
            break
        before = Head.of(entry)
    return pruned
