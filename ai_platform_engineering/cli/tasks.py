"""`platform-engineer tasks`: lists and shows stored tasks, also while a server writes them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from a2a.types.a2a_pb2 import Message, Task
from google.protobuf.json_format import MessageToDict

from ai_platform_engineering.cli.exit_codes import fail, refuse
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.events import SUPERVISOR, Event
from ai_platform_engineering.events_json import Asked, encode_line
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.archive import TaskArchive, open_archive
from ai_platform_engineering.storage.event_log.event_log import TaskQuery
from ai_platform_engineering.storage.event_log.reader import Row
from ai_platform_engineering.storage.event_log.task_record import TaskRecord
from ai_platform_engineering.terminal.plain import plain_lines
from ai_platform_engineering.terminal.reducer import reduce, resume_view
from ai_platform_engineering.terminal.view import View
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.a2a_common.protocol import STATE_NAMES
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of
from ai_platform_engineering.utils.a2a_common.server.timeline import first_question, iso_time, timeline, utc_time
from ai_platform_engineering.utils.characters import clean

STATES: Final = {name: state for state, name in STATE_NAMES.items()}
_QUESTION_LENGTH: Final = 60


class TaskLookupError(Exception):
    """No task, or more than one, matches the given id."""


def _record(archive: TaskArchive, id_prefix: str) -> TaskRecord:
    match archive.find_ids(id_prefix):
        case []:
            raise TaskLookupError(
                f"{archive} has no task {id_prefix!r}. `platform-engineer tasks list` shows all tasks."
            )
        case [task_id]:
            record = archive.record(task_id)
            if record is None:
                raise TaskLookupError(f"Task {task_id} was deleted just now.")
            return record
        case _:
            raise TaskLookupError(f"More than one task begins with {id_prefix!r}; give more characters of its id.")


def _recording(archive: TaskArchive, id_prefix: str, agent: str) -> list[tuple[float, Event | Asked]]:
    """Questions and events, each with the seconds since the task was created."""
    record = _record(archive, id_prefix)
    # The task is read first: a running task may get another event between the two reads.
    began, *times = archive.times(record.submitted.id)
    return [(((times[seq - 1] if seq else began) - began) / 1e9, item) for seq, item in recorded(record, agent)]


def list_tasks(options: argparse.Namespace, settings: Settings) -> int:
    state: str | None = options.state
    if state is not None and state not in STATES:
        return refuse(f"--state {state!r} is not one of {', '.join(STATES)}.")
    query = TaskQuery(state=STATES[state] if state else None, limit=options.limit)
    with open_archive(settings, options.agent or SUPERVISOR) as archive:
        rows = archive.page(query).rows
    for row in rows:
        if options.json:
            print_lines(json.dumps(_facts(row)))
        else:
            shown = short_question(row.submitted)
            changed = f"{utc_time(row.changed_ns):%Y-%m-%d %H:%M:%S}"
            print_lines(f"{one_line(row.id)}  {changed}  {STATE_NAMES[row.state]:<14}  {shown}")
    if not rows and not options.json:
        print_lines("There are no tasks." if state is None else f"There are no tasks in the state {state}.")
    return 0


def show_task(options: argparse.Namespace, settings: Settings) -> int:
    agent = options.agent or SUPERVISOR
    try:
        with open_archive(settings, agent) as archive:
            if options.json:
                print_lines(json.dumps(MessageToDict(_record(archive, options.id).snapshot().task), indent=2))
            else:
                _print_recording(_recording(archive, options.id, agent))
    except TaskLookupError as error:
        return fail(error)
    return 0


def _print_recording(recording: Iterable[tuple[float, Event | Asked]]) -> None:
    view = View()
    for _, item in recording:
        if isinstance(item, Asked):
            _print_view(view)
            view = resume_view(view)
            print_lines(f"> {clean(item.question)}\n")
        else:
            view = reduce(view, item)
    _print_view(view)


def export_task(options: argparse.Namespace, settings: Settings) -> int:
    output: Path | None = options.output
    agent = options.agent or SUPERVISOR
    try:
        with open_archive(settings, agent) as archive:
            recording = _recording(archive, options.id, agent)
    except TaskLookupError as error:
        return fail(error)
    text = "".join(f"{encode_line(item, at)}\n" for at, item in recording)
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        output.write_text(text, encoding="ascii")
    except OSError as error:
        return refuse(f"{output} cannot be written: {error.strerror}.")
    return 0


def recorded(record: TaskRecord, agent: str) -> Iterator[tuple[int, Event | Asked]]:
    """Questions and events, each with a sequence number. A question has the number of the event that follows it."""
    for seq, item in timeline(record.submitted, record.entries(), record.messages, agent):
        yield seq, Asked(question_of(item), record.submitted.context_id) if isinstance(item, Message) else item


def short_question(submitted: Task) -> str:
    """The first words of a task's question, on one line."""
    return shortened(one_line(first_question(submitted)))


def shortened(line: str) -> str:
    return line if len(line) <= _QUESTION_LENGTH else f"{line[: _QUESTION_LENGTH - 1]}…"


def _facts(row: Row) -> dict[str, object]:
    return {
        "id": row.id,
        "context_id": row.context_id,
        "state": STATE_NAMES[row.state],
        "created": iso_time(row.created_ns),
        "changed": iso_time(row.changed_ns),
        "events": row.events,
        "question": first_question(row.submitted),
    }


def _print_view(view: View) -> None:
    for line in plain_lines(view.transcript):
        print_lines(line.text)
