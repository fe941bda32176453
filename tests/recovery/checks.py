"""The properties of a whole conversation, whatever was killed in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from pprint import pformat
from typing import Any

from a2a.types.a2a_pb2 import TaskState

from ai_platform_engineering.events import Event, FinalResult, MessageEnded, TextDelta, ToolFinished
from tests.invariants import check_task
from tests.normalised import normalised
from tests.recovery.client import FollowedTask
from tests.recovery.model_server import ModelServer
from tests.recovery.scenario import ANSWER, Release, is_unknown

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Reference:
    """The conversation without a kill: the run as it is for every kill, and the history that the next turn gets."""

    run: Sequence[str]
    history: Sequence[str]


def check_conversation(
    release: Release,
    task: FollowedTask,
    model: ModelServer,
    data_dir: Path,
    reference: Reference | None = None,
) -> Reference:
    """`task` is the first turn; the second turn has been asked, too."""
    events = task.events
    ending = check_task(events)
    assert isinstance(ending, FinalResult), ending
    assert ending.text == ANSWER, f"another answer: {ending.text}"
    assert task.state == TaskState.TASK_STATE_COMPLETED, task.state
    changes = release.changes(data_dir)
    assert changes == (1, 1), f"notes and tickets, which must be one each: {changes}"
    assert not model.refusals, model.refusals
    _check_superseded(events)
    found = Reference(_run(events, release), _messages(model.history(release.follow_up), release))
    if reference is None:
        return found
    assert found.history == reference.history, _difference(reference.history, found.history)
    failed = [event for event in events if isinstance(event, ToolFinished) and not event.ok]
    assert all(is_unknown(event.reason or "") for event in failed), failed
    # A change that was in flight at a kill is looked up, so that its run has more calls.
    if not failed:
        assert found.run == reference.run, _difference(reference.run, found.run)
    return found


def _difference(expected: Sequence[str], found: Sequence[str]) -> str:
    return "\n".join(["not as without a kill:", *unified_diff(expected, found, lineterm="", n=1)])


def _run(events: Sequence[Event], release: Release) -> list[str]:
    """The run without ids and without texts that were written again, as lines."""
    text = pformat(normalised(_without_superseded(events)), width=120).replace(release.name, "RELEASE")
    # The digest covers the name of the release.
    return re.sub(r"'digest': '[0-9a-f]+'", "'digest': 'DIGEST'", text).splitlines()


def _check_superseded(events: Sequence[Event]) -> None:
    """A message that supersedes another names it in its first piece, comes after it and is the only one to do so."""
    known: dict[str, str | None] = {}
    for event in events:
        if isinstance(event, TextDelta) and event.message_id not in known:
            assert event.supersedes is None or event.supersedes in known, f"supersedes an unknown message: {event}"
            assert event.supersedes is None or event.supersedes not in known.values(), f"superseded twice: {event}"
            known[event.message_id] = event.supersedes


def _without_superseded(events: Sequence[Event]) -> list[Event]:
    superseded = {event.supersedes for event in events if isinstance(event, TextDelta)} - {None}
    return [
        event
        for event in events
        if not (isinstance(event, TextDelta | MessageEnded) and event.message_id in superseded)
    ]


def _messages(history: Sequence[Json], release: Release) -> list[str]:
    """Role, text and calls of each message, without ids."""
    lines = []
    for message in history:
        lines.append(f"{message['role']}: {message.get('content') or ''}")
        for call in message.get("tool_calls") or ():
            lines.append(f"{call['function']['name']} {call['function']['arguments']}")
    return [line.replace(release.name, "RELEASE") for line in lines]
