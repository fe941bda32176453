"""Recorded runs, played again: they keep the rules, they show what they showed, and the product still gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_platform_engineering.cli import main
from ai_platform_engineering.events import FinalResult
from tests.invariants import check_task
from tests.normalised import normalised
from tests.recordings.record import CONVERSATIONS, HERE, record, runs, supervisor, tasks

NAMES = sorted(CONVERSATIONS)


def test_every_conversation_is_recorded() -> None:
    assert sorted(path.stem for path in HERE.glob("*.jsonl")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_keeps_the_rules(name: str) -> None:
    for events in tasks((HERE / f"{name}.jsonl").read_text()):
        check_task(events)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_shown_with_its_answers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = HERE / f"{name}.jsonl"
    assert main(["replay", "--instant", str(path)]) == 0
    shown = capsys.readouterr()
    answers = [events[-1].text for events in runs(path.read_text()) if isinstance(events[-1], FinalResult)]
    assert shown.out.split() == " ".join(answers).split()


@pytest.mark.parametrize("name", NAMES)
async def test_the_product_still_does_what_was_recorded(name: str, tmp_path: Path) -> None:
    async with supervisor(tmp_path) as caller:
        now = await record(caller, name)
    recorded = (HERE / f"{name}.jsonl").read_text()
    assert [normalised(events) for events in tasks(now)] == [normalised(events) for events in tasks(recorded)], (
        "if this is meant, record again: python -m tests.recordings.record"
    )
