"""`platform-engineer memories`: lists and forgets what a person asked the supervisor to remember.

The commands use the store directly, also while a supervisor runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.cli.confirmation import confirmed
from ai_platform_engineering.cli.exit_codes import FAILED, fail, refuse
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.audit.stores import COMMAND_LINE, recording
from ai_platform_engineering.storage.memories.memories import Memories
from ai_platform_engineering.storage.memories.memory import Memory, UnknownMemoryError, owner_of
from ai_platform_engineering.storage.memories.stores import memories_file, memory_store
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.a2a_common.request_context import bounded_user
from ai_platform_engineering.utils.errors import ReadableError

T = TypeVar("T")


def list_memories(options: argparse.Namespace, settings: Settings) -> int:
    owner = _owner(options)
    try:
        found = _run(settings, lambda memories: memories.list_all(owner)) or ()
    except ReadableError as error:
        return fail(error)
    if options.json:
        print_lines(*(json.dumps(memory.facts()) for memory in found))
    else:
        print_lines(*(aligned([*map(_cells, found)]) if found else ["Nothing is remembered."]))
    return 0


def forget_memory(options: argparse.Namespace, settings: Settings) -> int:
    owner = _owner(options)
    try:
        memory = _run(settings, lambda memories: memories.forget(owner, options.id))
        if memory is None:
            raise UnknownMemoryError(options.id)
        _record(settings, f"memory {memory.id} of {owner}")
    except ReadableError as error:
        return fail(error)
    print_lines(json.dumps(memory.facts()) if options.json else f"Forgotten: {one_line(memory.text)}")
    return 0


def forget_all_memories(options: argparse.Namespace, settings: Settings) -> int:
    whose = f"of {options.user or options.subject}" if options.user or options.subject else "of callers without a user"
    if not options.yes:
        if not sys.stdin.isatty():
            return refuse(f"Without a terminal, --yes is required to forget all memories {whose}.")
        if not confirmed(f"Forget all memories {whose}? [y/N] "):
            print_lines("Nothing was forgotten.")
            return FAILED
    owner = _owner(options)
    try:
        count = _run(settings, lambda memories: memories.forget_all(owner)) or 0
        _record(settings, f"all memories of {owner}")
    except ReadableError as error:
        return fail(error)
    number = f"{count} memor{'y was' if count == 1 else 'ies were'}"
    print_lines(json.dumps({"forgotten": count}) if options.json else f"{number} forgotten.")
    return 0


def _record(settings: Settings, target: str) -> None:
    with recording(settings) as audit:
        audit.record(AuditFact("data_deleted", COMMAND_LINE, target=target))


def _owner(options: argparse.Namespace) -> str:
    caller = Principal("token", options.subject) if options.subject else ANONYMOUS
    owner = owner_of(caller, bounded_user(options.user or ""))
    if owner is None:
        raise SettingsError("--subject is empty.")
    return owner


def _run(settings: Settings, work: Callable[[Memories], Awaitable[T]]) -> T | None:
    """The result of `work`; None before the supervisor has created its file."""
    address = memory_store(settings)
    if address is None:
        raise SettingsError("Memories are off. LANGGRAPH_STORE_TYPE enables them: set it as for the server.")
    if settings.langgraph_store_type == "memory":
        raise SettingsError(
            "LANGGRAPH_STORE_TYPE=memory: the memories are in the process of the server. Send it GET /memories, or "
            "choose another type."
        )
    if settings.langgraph_store_type == "sqlite" and not memories_file(settings).exists():
        return None

    async def run() -> T:
        ttl = settings.langgraph_store_ttl_minutes
        async with Memories.opened(address, ttl, required=True) as memories:
            return await work(memories)

    return asyncio.run(run())


def _cells(memory: Memory) -> tuple[str, ...]:
    return memory.id, f"{memory.created:%Y-%m-%d %H:%M:%S}", one_line(memory.text)
