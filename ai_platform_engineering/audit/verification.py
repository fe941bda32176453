"""Verification of an audit record: finds entries that were changed, removed, inserted or reordered, and a cut end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ai_platform_engineering.audit.record import Entry, EntryError, Head, Seal
from ai_platform_engineering.utils.errors import ReadableError


class KeyMissingError(ReadableError):
    """The record can only be verified with its key."""

    def __init__(self) -> None:
        super().__init__("The record was written with AUDIT_KEY. Set the same key to verify it.")


@dataclass(frozen=True, slots=True)
class Verification:
    """`problem` names the first entry that does not fit; None if all fit. `notes` are gaps that the record states."""

    entries: int
    head: Head
    problem: str | None = None
    notes: tuple[str, ...] = ()


def verify(lines: Iterable[str], stored_head: str | None, seal: Seal, known: Head | None = None) -> Verification:
    """Verify entries from the oldest to the newest.

    `stored_head` is the head from outside of the entries, read before them. `known` is an entry that the record must
    have, noted earlier.
    """
    try:
        head = Head.read(stored_head, seal) if stored_head is not None else None
        head_problem = None if head is not None else "The head of the record is missing: its end may have been cut off."
    except EntryError:
        head, head_problem = None, "The head of the record was changed, or was written with another key."
    keyless = head.seq if head is not None and not seal.id else 0
    walk = _Walk(seal, [required for required in (head, known) if required is not None], keyless)
    for line in lines:
        if (problem := walk.step(line)) is not None:
            return walk.result(problem)
    if stored_head is None and not walk.entries:
        head_problem = None
    return walk.result(walk.start_problem() or walk.end_problem() or head_problem or walk.cut)


class _Walk:
    """The state of one pass over the entries. The record must have the entries `required`.

    The head of entry number `keyless` was written without a key, so no entry up to it can have one.
    """

    def __init__(self, seal: Seal, required: Sequence[Head], keyless: int) -> None:
        self._seal = seal
        self._keyless = keyless
        self._required = {head.seq: head.hash for head in required}
        self._before = Head()
        self._last = Head()
        self._entries = 0
        self._pruned: Head | None = None
        self._is_keyed = False
        self._notes: list[str] = []
        self.cut: str | None = None

    @property
    def entries(self) -> int:
        return self._entries

    def result(self, problem: str | None) -> Verification:
        return Verification(self._entries, self._last, problem, tuple(self._notes))

    def step(self, line: str) -> str | None:
        """The problem of the next entry; None if it fits."""
        last = self._last
        try:
            entry = Entry.read(line)
        except EntryError:
            return f"Entry {last.seq + 1} was changed: it is not an entry."
        if not self._entries:
            self._before = last = Head(entry.seq - 1, entry.previous)
        problem = _place_problem(entry, last) or self._key_problem(entry) or self._hash_problem(entry, last)
        if problem is None:
            self._read_facts(entry)
            self._last = Head.of(entry)
            self._entries += 1
        return problem

    def start_problem(self) -> str | None:
        """Whether the first entry begins the record, or follows deleted ones that a later entry names."""
        before = self._before
        if before in (Head(), self._pruned):
            return None
        if not before.seq:
            return "Entry 1 was changed: it does not begin a record."
        first = self._pruned.seq + 1 if self._pruned is not None and self._pruned.seq < before.seq else 1
        return f"{_entries(first, before.seq)} removed, and not because of AUDIT_RETENTION_DAYS."

    def end_problem(self) -> str | None:
        last = max(self._required, default=0)
        if last > self._last.seq:
            return f"{_entries(self._last.seq + 1, last)} removed from the end."
        if self._seal.id and self._entries and not self._is_keyed:
            return f"Entry {self._last.seq} was written without AUDIT_KEY."
        return None

    def _hash_problem(self, entry: Entry, last: Head) -> str | None:
        if (self._seal if entry.key else Seal()).hash(entry.hashed_text()) != entry.hash:
            return f"Entry {entry.seq} was changed: its hash does not fit."
        if entry.previous != last.hash:
            return f"Entry {entry.seq} was inserted, or entry {last.seq} was replaced: their hashes do not fit."
        if (required := self._required.get(entry.seq, entry.hash)) != entry.hash:
            return f"Entry {entry.seq} was replaced: its hash was {required}."
        return None

    def _key_problem(self, entry: Entry) -> str | None:
        if entry.key and not self._seal.id:
            if entry.seq <= self._keyless:
                return f"Entry {entry.seq} has a key, the last entry none: it was changed, or AUDIT_KEY was removed."
            raise KeyMissingError
        if entry.key and entry.key != self._seal.id:
            return f"Entry {entry.seq} was written with another AUDIT_KEY (id {entry.key}, not {self._seal.id})."
        if not entry.key and self._is_keyed:
            return f"Entry {entry.seq} was inserted: it was written without AUDIT_KEY, unlike those before it."
        self._is_keyed = bool(entry.key)
        return None

    def _read_facts(self, entry: Entry) -> None:
        count, when = entry.facts.get("count", 0), entry.facts.get("time", "")
        match entry.facts.get("kind"):
            case "entries_pruned":
                self._pruned = Head(count, str(entry.facts.get("anchor", "")))
            case "entries_lost":
                self._notes.append(
                    f"Entry {entry.seq} ({when}): {count} {'entry' if count == 1 else 'entries'} could not be stored."
                )
            case "record_cut":
                self.cut = self.cut or f"Entry {entry.seq} ({when}): {entry.facts.get('reason', '')}"


def _place_problem(entry: Entry, last: Head) -> str | None:
    if entry.seq > last.seq + 1:
        return f"{_entries(last.seq + 1, entry.seq - 1)} removed: entry {entry.seq} follows entry {last.seq}."
    if entry.seq <= last.seq:
        return f"Entry {entry.seq} was inserted or moved: it follows entry {last.seq}."
    return None


def _entries(first: int, last: int) -> str:
    return f"Entry {first} was" if first == last else f"Entries {first} to {last} were"
