"""`platform-engineer conversations`: lists, shows and deletes stored conversations.

Listing and showing read the event log, also while a supervisor writes to it. A file is changed by the supervisor that
owns it, so deleting goes through a running supervisor (`--url`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ai_platform_engineering.cli.confirmation import confirmed
from ai_platform_engineering.cli.exit_codes import FAILED, fail, refuse
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.cli.supervisor_request import supervisor_json
from ai_platform_engineering.cli.tasks import recorded, short_question, shortened
from ai_platform_engineering.events import SUPERVISOR, Canceled, Ending, Failed, FinalResult, Form, InputRequired
from ai_platform_engineering.events_json import Asked
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.event_log.archive import TaskArchive, open_archive
from ai_platform_engineering.storage.event_log.conversations import ConversationQuery, ConversationRow
from ai_platform_engineering.storage.event_log.event_log import TaskQuery
from ai_platform_engineering.storage.event_log.file import LogInUseError, tasks_file
from ai_platform_engineering.storage.event_log.reader import Row
from ai_platform_engineering.text.form_text import form_lines
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.a2a_common.codec.forms import form_data
from ai_platform_engineering.utils.a2a_common.protocol import STATE_NAMES, WAITING_STATES
from ai_platform_engineering.utils.a2a_common.server.timeline import first_question, iso_time, utc_time
from ai_platform_engineering.utils.characters import clean
from ai_platform_engineering.utils.errors import ReadableError

_MAX_TASKS: Final = 1_000_000


class ConversationLookupError(ReadableError):
    """No conversation, or more than one, matches the given id."""


class RunningSupervisorError(ReadableError):
    """A supervisor owns the files."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is being written by a running supervisor. Give its address, for example "
            "--url http://127.0.0.1:8000."
        )


@dataclass(frozen=True, slots=True)
class _Turn:
    """One task of a conversation: what was asked, and how it ended or what it waits for."""

    row: Row
    questions: tuple[str, ...]
    """The question, then the answers to forms."""
    ending: Ending | None

    @property
    def answer(self) -> str | None:
        return self.ending.text if isinstance(self.ending, FinalResult) else None

    @property
    def error(self) -> str | None:
        return self.ending.message if isinstance(self.ending, Failed | Canceled) else None

    @property
    def forms(self) -> tuple[Form, ...]:
        waits = self.row.state in WAITING_STATES
        return self.ending.forms if waits and isinstance(self.ending, InputRequired) else ()

    def facts(self) -> dict[str, object]:
        return {
            "id": self.row.id,
            "state": STATE_NAMES[self.row.state],
            **_times(self.row),
            "questions": list(self.questions),
            "answer": self.answer,
            "error": self.error,
            "forms": [form_data(form) for form in self.forms],
        }

    def lines(self) -> Iterator[str]:
        yield f"{utc_time(self.row.created_ns):%Y-%m-%d %H:%M:%S}  {STATE_NAMES[self.row.state]}  {self.row.id}"
        for question in self.questions:
            yield f"> {clean(question)}"
        for text in filter(None, (self.answer, self.error)):
            yield ""
            yield clean(text)
        for form in self.forms:
            yield ""
            yield from form_lines(form)


def list_conversations(options: argparse.Namespace, settings: Settings) -> int:
    with open_archive(settings) as archive:
        rows = archive.conversations(ConversationQuery(limit=options.limit)).rows
    if options.json:
        lines = [json.dumps(_facts(row)) for row in rows]
    else:
        lines = [*aligned([*map(_cells, rows)])] if rows else ["There are no conversations."]
    print_lines(*lines)
    return 0


def show_conversation(options: argparse.Namespace, settings: Settings) -> int:
    try:
        with open_archive(settings) as archive:
            context_id = _find(archive, options.id)
            turns = [*_turns(archive, context_id)]
    except ConversationLookupError as error:
        return fail(error)
    if options.json:
        print_lines(json.dumps({"id": context_id, "tasks": [turn.facts() for turn in turns]}, indent=2))
        return 0
    for number, turn in enumerate(turns):
        if number:
            print_lines("")
        print_lines(*turn.lines())
    return 0


def delete_conversation(options: argparse.Namespace, settings: Settings) -> int:
    try:
        context_id, description = _stored(settings, options.id, with_server=options.url is not None)
    except ConversationLookupError as error:
        return fail(error)
    if not options.yes:
        if not sys.stdin.isatty():
            return refuse(f"Without a terminal, --yes is required to delete the conversation {context_id}.")
        if not confirmed(f"Delete the conversation {context_id}{description}? [y/N] "):
            print_lines("Nothing was deleted.")
            return FAILED
    try:
        if options.url is not None:
            count = asyncio.run(_delete_at(options.url, settings, context_id, force=options.force))
        else:
            count = asyncio.run(_delete_here(settings, context_id, force=options.force))
    except SupervisorError as error:
        return refuse(error) if error.misconfigured else fail(error)
    except ReadableError as error:
        return fail(error)
    print_lines(f"The conversation {context_id} was deleted, with {_number(count)}.")
    return 0


def _find(archive: TaskArchive, beginning: str) -> str:
    match archive.find_conversations(beginning):
        case []:
            raise ConversationLookupError(
                f"{archive} has no conversation {beginning!r}. `platform-engineer conversations list` shows all."
            )
        case [context_id]:
            return context_id
        case _:
            raise ConversationLookupError(
                f"More than one conversation begins with {beginning!r}; give more characters of its id."
            )


def _stored(settings: Settings, beginning: str, *, with_server: bool) -> tuple[str, str]:
    """The id of a conversation and its description. The supervisor of `--url` may have its tasks elsewhere."""
    try:
        with open_archive(settings) as archive:
            context_id = _find(archive, beginning)
            turns = [*_turns(archive, context_id)]
    except (ConversationLookupError, SettingsError):
        if not with_server:
            raise
        return beginning, ""
    first = short_question(turns[0].row.submitted) if turns else ""
    return context_id, f" ({_number(len(turns))}, “{first}”)"


def _turns(archive: TaskArchive, context_id: str) -> Iterator[_Turn]:
    rows = archive.page(TaskQuery(context_id=context_id, limit=_MAX_TASKS)).rows
    for row in sorted(rows, key=lambda row: (row.created_ns, row.id)):
        record = archive.record(row.id)
        if record is None:
            continue  # deleted since the listing
        items = [item for _, item in recorded(record, SUPERVISOR)]
        endings = [item for item in items if isinstance(item, Ending)]
        questions = tuple(item.question for item in items if isinstance(item, Asked))
        yield _Turn(row, questions, endings[-1] if endings else None)


async def _delete_at(url: str, settings: Settings, context_id: str, *, force: bool) -> int:
    path, params = f"/conversations/{quote(context_id, safe='')}", {"force": "true"} if force else {}
    answer = await supervisor_json("DELETE", url, path, settings, params, "deleted_tasks")
    return int(answer["deleted_tasks"])


async def _delete_here(settings: Settings, context_id: str, *, force: bool) -> int:
    """Without a supervisor: this process owns the files meanwhile. A database is shared with running supervisors."""
    from ai_platform_engineering.audit.record import AuditFact
    from ai_platform_engineering.storage.audit.stores import COMMAND_LINE, recording
    from ai_platform_engineering.storage.event_log.log_database import postgres_log
    from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
    from ai_platform_engineering.utils.a2a_common.server.conversations import ConversationOpenError, open_tasks
    from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
    from ai_platform_engineering.utils.checkpointer import ConversationSaver, checkpointer_for

    log = postgres_log(settings) if settings.event_log == "postgres" else SqliteEventLog(tasks_file(settings))
    # A store that cannot be opened now must fail the command: the checkpoints would stay.
    required = settings.model_copy(update={"require_persistence": True, "langgraph_dev": False})
    try:
        async with log.opened(), checkpointer_for(required) as saver:
            unfinished = await open_tasks(log, context_id)
            if unfinished and not force:
                raise ConversationOpenError(context_id, unfinished)
            for task in unfinished:
                await TaskEndings(log, SUPERVISOR).end(task.id, Canceled())
            if isinstance(saver, ConversationSaver):
                await saver.forget([context_id])
            count = await log.delete_conversation(context_id)
            with recording(settings) as audit:
                audit.record(AuditFact("data_deleted", COMMAND_LINE, conversation=context_id, target="conversation"))
            return count
    except LogInUseError:
        raise RunningSupervisorError(tasks_file(settings)) from None


def _facts(row: ConversationRow) -> dict[str, object]:
    return {
        "id": row.id,
        "tasks": row.tasks,
        "state": STATE_NAMES[row.state],
        **_times(row),
        "name": row.name,
        "question": first_question(row.first),
    }


def _times(row: ConversationRow | Row) -> dict[str, str]:
    return {"created": iso_time(row.created_ns), "changed": iso_time(row.changed_ns)}


def _cells(row: ConversationRow) -> tuple[str, ...]:
    return (
        one_line(row.id),
        f"{utc_time(row.changed_ns):%Y-%m-%d %H:%M:%S}",
        _number(row.tasks),
        STATE_NAMES[row.state],
        shortened(one_line(row.name)) if row.name else short_question(row.first),
    )


def _number(tasks: int) -> str:
    return f"{tasks} task{'' if tasks == 1 else 's'}"
