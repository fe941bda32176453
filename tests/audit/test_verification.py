"""Any single change of an audit record is found."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.audit.record import AuditFact, Entry, Head, Kind, Seal, canonical, chained
from ai_platform_engineering.audit.verification import KeyMissingError, verify
from ai_platform_engineering.identity.principal import KEY_HOLDER, Principal

KEY = Seal("a key of the operator")
SEALS = [Seal(), KEY]

numbers = st.integers(2, 6)


def facts_of(number: int, kind: Kind = "sign_in") -> list[AuditFact]:
    return [AuditFact(kind, KEY_HOLDER, target=f"t{each}", count=each) for each in range(number)]


def record(found: Sequence[AuditFact], seal: Seal) -> tuple[list[str], str]:
    entries = [*chained(Head(), found, seal)]
    return [entry.line() for entry in entries], Head.of(entries[-1]).line(seal)


def problem(lines: Sequence[str], head: str | None, seal: Seal, known: Head | None = None) -> str:
    return verify(lines, head, seal, known).problem or ""


@given(numbers, st.sampled_from(SEALS), st.data())
def test_any_single_change_of_a_line_is_found(number: int, seal: Seal, data: st.DataObject) -> None:
    lines, head = record(facts_of(number), seal)
    place = data.draw(st.integers(0, number - 1))
    line = lines[place]
    begin = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(begin, min(begin + 3, len(line))))
    lines[place] = (
        line[:begin] + data.draw(st.sampled_from(["", "0", "1", "t", '"', " ", "{", ",", "\\u0074"])) + line[end:]
    )
    assert bool(problem(lines, head, seal)) == (lines[place] != line)


@given(numbers, st.sampled_from(SEALS), st.data())
def test_a_removed_an_inserted_and_a_moved_line_are_found(number: int, seal: Seal, data: st.DataObject) -> None:
    lines, head = record(facts_of(number), seal)
    first, second = data.draw(st.permutations(range(number)))[:2]
    assert problem([*lines[:first], *lines[first + 1 :]], head, seal)
    assert problem([*lines[:first], lines[second], *lines[first:]], head, seal)
    lines[first], lines[second] = lines[second], lines[first]
    assert problem(lines, head, seal)


def test_a_problem_names_the_entry() -> None:
    lines, head = record(facts_of(4), Seal())
    assert problem([lines[0], *lines[2:]], head, Seal()) == "Entry 2 was removed: entry 3 follows entry 1."
    assert problem([*lines[:2], *lines[1:]], head, Seal()) == "Entry 2 was inserted or moved: it follows entry 2."
    assert problem(lines[:2], head, Seal()) == "Entries 3 to 4 were removed from the end."
    assert problem([], head, Seal()) == "Entries 1 to 4 were removed from the end."
    assert problem(lines[1:], head, Seal()) == "Entry 1 was removed, and not because of AUDIT_RETENTION_DAYS."
    assert problem([*lines[:2], lines[2].replace("t2", "t9"), lines[3]], head, Seal()) == (
        "Entry 3 was changed: its hash does not fit."
    )
    assert problem([*lines[:2], f" {lines[2]}", lines[3]], head, Seal()) == "Entry 3 was changed: it is not an entry."
    assert problem(lines, None, Seal()).startswith("The head of the record is missing")
    assert problem(lines, head.replace("4", "5"), Seal()).startswith("The head of the record was changed")
    keyed = lines[0].replace('"key":""', '"key":"0"')
    assert problem([keyed, *lines[1:]], head, Seal()).startswith("Entry 1 has a key, the last entry none")


def test_a_recomputed_chain_is_found_with_a_noted_head_or_with_the_key() -> None:
    lines, head = record(facts_of(3), Seal())
    noted = Head.of(Entry.read(lines[1]))
    forged, forged_head = record(facts_of(3, "denied"), Seal())
    assert not problem(forged, forged_head, Seal())
    assert problem(forged, head, Seal()).startswith("Entry 3 was replaced")
    assert problem(forged, forged_head, Seal(), noted).startswith("Entry 2 was replaced")
    assert problem(forged, forged_head, KEY)
    assert problem(forged, Head.of(Entry.read(forged[2])).line(KEY), KEY) == "Entry 3 was written without AUDIT_KEY."


def test_entries_without_a_key_may_precede_those_with_one() -> None:
    before = [*chained(Head(), facts_of(2), Seal())]
    after = [*chained(Head.of(before[-1]), facts_of(2), KEY)]
    lines, head = [entry.line() for entry in (*before, *after)], Head.of(after[-1]).line(KEY)
    assert not problem(lines, head, KEY)
    assert problem([lines[0].replace("t0", "t7"), *lines[1:]], head, KEY)
    (forged,) = chained(Head.of(after[-1]), facts_of(1), Seal())
    assert problem([*lines, forged.line()], head, KEY).startswith("Entry 5 was inserted")
    with pytest.raises(KeyMissingError):
        verify(lines, head, Seal())
    assert "another AUDIT_KEY" in problem(lines, head, Seal("another key of theirs"))


def test_deleted_entries_are_accepted_only_up_to_the_anchor() -> None:
    entries = [*chained(Head(), facts_of(4), KEY)]
    anchor = AuditFact("entries_pruned", count=2, anchor=entries[1].hash)
    entries += chained(Head.of(entries[-1]), [anchor], KEY)
    lines, head = [entry.line() for entry in entries], Head.of(entries[-1]).line(KEY)
    assert not problem(lines[2:], head, KEY)
    assert problem(lines[3:], head, KEY) == "Entry 3 was removed, and not because of AUDIT_RETENTION_DAYS."


def test_entries_have_no_control_characters_and_are_bounded() -> None:
    (entry,) = chained(Head(), [AuditFact("denied", Principal("token", "a\nb\x1b[1m\u202e"), reason="x" * 5000)], KEY)
    assert entry.facts["subject"] == "a b [1m "
    assert len(entry.facts["reason"]) == 300
    assert entry.line().isprintable()
    assert json.loads(entry.line())["facts"]["kind"] == "denied"
    assert canonical({"b": 1, "a": "ä"}) == '{"a":"\\u00e4","b":1}'
