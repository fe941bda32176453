"""`platform-engineer usage`: shows what people and groups have used, from the store or from a running supervisor."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from ai_platform_engineering.budgets.file import budgets_of
from ai_platform_engineering.budgets.report import limit_cells, scopes_named, usage_cells, usage_facts
from ai_platform_engineering.budgets.usage import day_of, days_before
from ai_platform_engineering.cli.exit_codes import fail, refuse
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.cli.supervisor_request import supervisor_json
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.usage.stores import usage_store
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.errors import ReadableError


def show_usage(options: argparse.Namespace, settings: Settings) -> int:
    try:
        facts = _asked(options, settings) if options.url else _stored(options, settings)
    except SupervisorError as error:
        return refuse(error) if error.misconfigured else fail(error)
    except (ReadableError, SettingsError) as error:
        return fail(error)
    lines = [json.dumps(facts)] if options.json else _lines(facts)
    print_lines(*lines)
    return 0


def _asked(options: argparse.Namespace, settings: Settings) -> Mapping[str, Any]:
    params = {"days": str(options.days), **({"all": "true"} if options.all else {})}
    if options.subject is not None:
        params["subject"] = options.subject
    return asyncio.run(supervisor_json("GET", options.url, "/usage", settings, params, "usage"))


def _stored(options: argparse.Namespace, settings: Settings) -> Mapping[str, Any]:
    """The counts in the store, also while a server adds to them. They lack its last seconds."""
    if settings.event_log == "memory":
        raise SettingsError("With EVENT_LOG=memory, usage is in the memory of the supervisor: ask it with --url.")
    today = day_of()
    with closing(usage_store(settings)) as store:
        scopes = None if options.subject is None else scopes_named(options.subject)
        rows = store.rows(days_before(today, options.days - 1), scopes)
    return usage_facts(rows, today, budgets_of(settings).currency)


def _lines(facts: Mapping[str, Any]) -> Iterator[str]:
    cells = usage_cells(facts)
    yield from aligned(cells) if cells else ["Nothing was used."]
    if limits := limit_cells(facts):
        yield ""
        yield from aligned(limits)
    if facts.get("warning"):
        yield one_line(str(facts["warning"]))
