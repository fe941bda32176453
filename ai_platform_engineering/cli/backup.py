"""`platform-engineer backup`: copies the data directory, also while a supervisor runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.cli.printing import print_lines, print_note
from ai_platform_engineering.settings import MEMORY_SERVERS, Settings
from ai_platform_engineering.storage.backup import BackupError, back_up
from ai_platform_engineering.text.plain_text import aligned


def run_backup(options: argparse.Namespace, settings: Settings) -> int:
    target: Path = options.directory
    try:
        copied = back_up(settings.data_dir, target)
    except BackupError as error:
        return fail(error)
    print_lines(*aligned([(file.name, f"{file.size:,} bytes") for file in copied]))
    print_lines(f"{settings.data_dir} was copied to {target}.")
    for data, server in _elsewhere(settings):
        print_note(f"Not copied: {data}, stored in {server}. Back up that database as well.")
    return 0


def _elsewhere(settings: Settings) -> Iterator[tuple[str, str]]:
    """The data that is not in the data directory, and the kind of server that stores it."""
    if settings.checkpoint_type not in {"sqlite", "memory"}:
        yield "the conversations", settings.checkpoint_type
    if (kind := settings.langgraph_store_type) in MEMORY_SERVERS:
        yield "the memories", kind
    if settings.rag_database_url is not None:
        yield "the knowledge base", "postgres"
    if settings.skills_database_url is not None:
        yield "the skills of the API", "postgres"
    if settings.event_log == "postgres":
        yield "tasks, the audit record, usage, feedback and the receivers of push notifications", "postgres"
    if settings.slack_sessions == "postgres":
        yield "the threads of the Slack bot", "postgres"
