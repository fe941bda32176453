"""`platform-engineer audit`: lists, verifies and exports the audit record, also while a server writes it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ai_platform_engineering.audit.log import AuditUnavailableError
from ai_platform_engineering.audit.record import Entry, EntryError, Head, iso_time
from ai_platform_engineering.audit.verification import KeyMissingError, Verification, verify
from ai_platform_engineering.cli.exit_codes import fail, refuse
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.audit.stores import AuditRecord, audit_record, seal_of
from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.text.plain_text import aligned, one_line


def list_entries(options: argparse.Namespace, settings: Settings) -> int:
    record = _record(options, settings)
    try:
        with record.open_lines(newest_first=True) as lines:
            entries = [*islice(_matching(lines, options), options.limit)]
    except AuditUnavailableError as error:
        return fail(error)
    except EntryError:
        return fail("An entry of the audit record cannot be read. `platform-engineer audit verify` finds it.")
    finally:
        record.close()
    if options.json:
        print_lines(*(entry.line() for entry in entries))
    else:
        print_lines(*(aligned([*map(_cells, entries)]) if entries else ["There are no entries."]))
    return 0


def verify_record(options: argparse.Namespace, settings: Settings) -> int:
    known = Head(*options.head) if options.head is not None else None
    try:
        if options.file is not None:
            lines, head = _exported(options.file)
            found = verify(lines, head, seal_of(settings), known)
        else:
            found = _verified(_record(options, settings), known, settings)
    except KeyMissingError as error:
        return refuse(error)
    except AuditUnavailableError as error:
        return fail(error)
    except OSError as error:
        return refuse(f"{options.file} cannot be read: {reason(error)}.")
    print_lines(*found.notes)
    if found.problem is not None:
        return fail(found.problem)
    print_lines(f"The record is intact: {_number(found.entries)}. Head: {found.head.seq}:{found.head.hash}")
    return 0


def export_entries(options: argparse.Namespace, settings: Settings) -> int:
    record = _record(options, settings)
    output: Path | None = options.output
    try:
        head = record.head()
        with record.open_lines() as lines:
            if output is None:
                _write(sys.stdout.write, lines, head)
            else:
                with output.open("w", encoding="utf-8") as file:
                    _write(file.write, lines, head)
    except AuditUnavailableError as error:
        return fail(error)
    except OSError as error:
        return refuse(f"{output} cannot be written: {reason(error)}.")
    finally:
        record.close()
    return 0


def _record(options: argparse.Namespace, settings: Settings) -> AuditRecord:
    return audit_record(settings, options.agent or SUPERVISOR)


def _verified(record: AuditRecord, known: Head | None, settings: Settings) -> Verification:
    try:
        head = record.head()
        with record.open_lines() as lines:
            return verify(lines, head, seal_of(settings), known)
    finally:
        record.close()


def _exported(path: Path) -> tuple[list[str], str | None]:
    """The entries of an export, and the head in its last line."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return (lines[:-1], lines[-1]) if lines and lines[-1].startswith('{"head":') else (lines, None)


def _matching(lines: Iterable[str], options: argparse.Namespace) -> Iterator[Entry]:
    wanted = {"kind": options.kind, "subject": options.subject, "task": options.task}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    since = iso_time(int(options.since.timestamp() * 1e9)) if options.since is not None else ""
    for line in lines:
        entry = Entry.read(line)
        # Not until the first older entry: processes that share a record may store theirs in another order.
        if entry.facts.get("time", "") >= since and all(
            entry.facts.get(name) == value for name, value in wanted.items()
        ):
            yield entry


def _write(write: Any, lines: Iterable[str], head: str | None) -> None:
    for line in lines:
        write(f"{line}\n")
    if head is not None:
        write(f"{head}\n")


def _cells(entry: Entry) -> tuple[str, ...]:
    facts = entry.facts
    who = facts.get("subject") or facts.get("verified_by", "")
    return (
        str(entry.seq),
        str(facts.get("time", ""))[:19].replace("T", " "),
        str(facts.get("kind", "")),
        _via(str(who), facts),
        _what(facts),
    )


def _via(who: str, facts: Mapping[str, Any]) -> str:
    return one_line(f"{who} via {facts['via']}" if "via" in facts else who)


def _what(facts: Mapping[str, Any]) -> str:
    call = ".".join(str(facts[name]) for name in ("agent", "tool") if name in facts)
    count = f"{facts['count']} times" if facts.get("count", 1) > 1 and "address" in facts else ""
    named = [call, *(str(facts.get(name, "")) for name in ("target", "outcome", "reason", "address")), count]
    if "task" in facts:
        named.append(f"task {facts['task']}")
    elif "conversation" in facts:
        named.append(f"conversation {facts['conversation']}")
    return one_line(", ".join(filter(None, named)))


def _number(entries: int) -> str:
    return f"{entries} {'entry' if entries == 1 else 'entries'}"
