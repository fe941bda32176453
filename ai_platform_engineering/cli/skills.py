"""`platform-engineer skills`: the skills of this machine or of a running supervisor, both through the REST API."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx
from starlette.types import Receive, Scope, Send

from ai_platform_engineering.cli.exit_codes import fail, refuse
from ai_platform_engineering.cli.printing import print_lines, print_note
from ai_platform_engineering.cli.skills_validation import PathError, check_path, indented, remarks
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.skills_middleware.checks import CheckedSkill
from ai_platform_engineering.skills_middleware.client import SkillsApiError, SkillsClient, SkillsStatus
from ai_platform_engineering.skills_middleware.skill import InvalidSkillError, Visibility
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.characters import clean
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.redact import redact
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth

_DESCRIPTION_LENGTH: Final = 90
_LOCAL: Final = "http://this-machine"
_MAX_PROBLEMS: Final = 10
_LOCAL_ORIGIN: Final = "command line"
"""Origin of skills that are added on this machine, in place of a client's address."""
_TIMEOUT: Final = 120.0
"""Seconds; a refresh reads Git repositories."""


class SkillRefusedError(ReadableError):
    """The command cannot be executed for this skill. The text has the reason."""


@dataclass(frozen=True, slots=True)
class RequestedAccess:
    """The visibility and team from the command line, if given."""

    visibility: Visibility | None = None
    team: str | None = None

    @property
    def parameters(self) -> dict[str, str]:
        named = {"visibility": self.visibility, "team": self.team}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True)
class _SkillsConnection:
    client: SkillsClient
    place: str
    """Location of the skills, for messages."""


def list_skills(options: argparse.Namespace, settings: Settings) -> int:
    return _run(_list_skills(options, settings))


def show_skill(options: argparse.Namespace, settings: Settings) -> int:
    return _run(_show_skill(options, settings))


def add_skill(options: argparse.Namespace, settings: Settings) -> int:
    access = _access(options)
    return refuse(access) if isinstance(access, str) else _run(_add_skill(options, settings, access))


def remove_skill(options: argparse.Namespace, settings: Settings) -> int:
    access = _access(options)
    return refuse(access) if isinstance(access, str) else _run(_remove_skill(options, settings, access))


def refresh_skills(options: argparse.Namespace, settings: Settings) -> int:
    return _run(_refresh_skills(options, settings))


def _access(options: argparse.Namespace) -> RequestedAccess | str:
    """The requested access, or an error message."""
    if options.team and options.visibility not in (None, "team"):
        return f"--team is for --visibility team, not {options.visibility}."
    if options.visibility == "team" and not options.team:
        return "--visibility team needs the name of the team: --team NAME."
    return RequestedAccess("team" if options.team else options.visibility, options.team)


def _run(command: Coroutine[Any, Any, int]) -> int:
    try:
        return asyncio.run(command)
    except PathError as error:
        return refuse(error)
    except SupervisorError as error:
        return refuse(error) if error.misconfigured else fail(error)
    except SkillRefusedError as error:
        return fail(error)


async def _list_skills(options: argparse.Namespace, settings: Settings) -> int:
    query: str = options.search
    async with _connected(settings, options.url) as connection:
        skills = await connection.client.all(query)
        status = None if options.json else await connection.client.status()
    if status is None:
        for skill in skills:
            print_lines(json.dumps(skill))
        return 0
    if skills:
        rows = [row for skill in skills for row in _rows(skill, with_overridden=options.all)]
        for line in aligned([("NAME", "SOURCE", "VISIBILITY", "DESCRIPTION"), *rows]):
            print_lines(line)
    matching = f" that match {query!r}" if query else ""
    off = "" if status.sources else ". They are switched off: ENABLE_SKILLS=false"
    print_note(f"{_count(len(skills), 'skill')}{matching} {connection.place}{off}.")
    _say_problems(status)
    return 0


async def _show_skill(options: argparse.Namespace, settings: Settings) -> int:
    async with _connected(settings, options.url) as connection:
        skill = await _found(connection.client, options.name)
    if options.file is not None:
        print_lines(clean(_file_of(skill, options.file)).rstrip("\n"))
    elif options.json:
        print_lines(json.dumps(skill, indent=2))
    else:
        for line in _described(skill):
            print_lines(line)
    return 0


async def _add_skill(options: argparse.Namespace, settings: Settings, access: RequestedAccess) -> int:
    checked = _checked(options.path)
    name = checked.document.name
    body = {"content": checked.text, "files": dict(checked.files), **access.parameters}
    async with _connected(settings, options.url) as connection:
        client = connection.client
        try:
            stored, done = await client.create(body), "added"
        except SkillsApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            if not options.replace:
                raise SkillRefusedError(f"The skill {name} exists {connection.place}. --replace replaces it.") from None
            wanted = {"visibility": "global", **access.parameters}
            before = await client.get(name, wanted)
            stored, done = await client.replace(name, wanted, str(before["etag"]), body), "replaced"
    for line in remarks(checked):
        print_note(line)
    if options.json:
        print_lines(json.dumps(stored))
    else:
        print_lines(f"The skill {name} was {done} {connection.place}. The next request uses it.")
    return 0


async def _remove_skill(options: argparse.Namespace, settings: Settings, access: RequestedAccess) -> int:
    name: str = options.name
    async with _connected(settings, options.url) as connection:
        try:
            await connection.client.delete(name, access.parameters)
        except SkillsApiError as error:
            if error.status == HTTPStatus.CONFLICT:
                raise _not_stored(await connection.client.get(name, access.parameters)) from None
            if error.status == HTTPStatus.NOT_FOUND and not access.parameters:
                await _found(connection.client, name)
            raise
        left = await connection.client.find(name)
    if options.json:
        print_lines(json.dumps({"removed": name, **access.parameters}))
        return 0
    print_lines(f"The skill {name} was removed {connection.place}. The next request does not use it.")
    if left is not None:
        print_note(f"The {left['visibility']} skill {name} of the source {left['source']} is in effect now.")
    return 0


async def _refresh_skills(options: argparse.Namespace, settings: Settings) -> int:
    """The exit code is 1 if a source could not be read; its previously loaded skills stay."""
    async with _connected(settings, options.url) as connection:
        refreshed = await connection.client.refresh()
    if options.json:
        print_lines(json.dumps(refreshed.facts))
    else:
        counts = ", ".join(f"{source.name} {source.count}" for source in refreshed.sources)
        print_lines(
            f"The sources were loaded again {connection.place}: {one_line(counts) or 'skills are switched off'}."
        )
        _say_problems(refreshed)
    return 1 if any(source.failed for source in refreshed.sources) else 0


@asynccontextmanager
async def _connected(settings: Settings, url: str | None) -> AsyncIterator[_SkillsConnection]:
    timeout = httpx.Timeout(_TIMEOUT, connect=5.0)
    if url is not None:
        async with httpx.AsyncClient(auth=SupervisorAuth(settings, url), timeout=timeout) as http:
            yield _SkillsConnection(SkillsClient(http, url), f"at {redact(url)}")
        return
    async with (
        _local_transport(settings) as transport,
        httpx.AsyncClient(transport=transport, timeout=timeout) as http,
    ):
        yield _SkillsConnection(SkillsClient(http, _LOCAL), f"on this machine (DATA_DIR {settings.data_dir})")


@asynccontextmanager
async def _local_transport(settings: Settings) -> AsyncIterator[httpx.AsyncBaseTransport]:
    """The REST API in this process, as an HTTP transport. A user who can read the key acts as its holder."""
    # FastAPI is slow to import and not needed for a remote supervisor.
    from ai_platform_engineering.identity.principal import ANONYMOUS, CALLER, KEY_HOLDER
    from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
    from ai_platform_engineering.skills_middleware.rest.app import create_rest
    from ai_platform_engineering.storage.audit.stores import recording

    caller = KEY_HOLDER if settings.a2a_auth_shared_key is not None else ANONYMOUS
    catalog = SkillCatalog(settings)

    async def as_caller(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {CALLER: caller}}, receive, send)

    await catalog.start()
    try:
        with recording(settings) as audit:
            app = create_rest(catalog, settings, audit)
            yield httpx.ASGITransport(as_caller, client=(_LOCAL_ORIGIN, 0))
    finally:
        await catalog.aclose()


def _rows(skill: Mapping[str, Any], *, with_overridden: bool) -> Iterator[tuple[str, ...]]:
    description = one_line(str(skill["description"]))
    if len(description) > _DESCRIPTION_LENGTH:
        description = f"{description[: _DESCRIPTION_LENGTH - 1]}…"
    yield one_line(str(skill["name"])), str(skill["source"]), _visibility(skill), description
    if with_overridden:
        for hidden in skill["overrides"]:
            reason = f"overridden: {one_line(str(hidden['reason']))}"
            yield one_line(str(skill["name"])), str(hidden["source"]), _visibility(hidden), reason


def _described(skill: Mapping[str, Any]) -> Iterator[str]:
    yield one_line(str(skill["name"]))
    yield one_line(str(skill["description"]))
    yield ""
    facts = {
        "Source": f"{skill['source']} ({one_line(str(skill['origin']))})" if skill["origin"] else str(skill["source"]),
        "Visibility": _visibility(skill),
        "Added": _when(skill["added_at"], skill["added_by"]),
        "Updated": _when(skill["updated_at"], skill["updated_by"]) if skill["updated_at"] != skill["added_at"] else "",
        "License": one_line(str(skill["license"] or "")),
        "Files": one_line(", ".join(map(str, skill["files"]))),
        "Size": f"{skill['size']:,} bytes",
    }
    yield from aligned([(name, value) for name, value in facts.items() if value])
    for hidden in skill["overrides"]:
        yield f"It overrides the {_visibility(hidden)} skill of the source {hidden['source']}: {hidden['reason']}."
    yield ""
    yield clean(str(skill["instructions"])).strip("\n")


def _when(at: object, by: object) -> str:
    parts = [str(at)[:19].replace("T", " ")] if at else []
    return " ".join([*parts, f"by {one_line(str(by))}"] if by else parts)


def _visibility(skill: Mapping[str, Any]) -> str:
    return f"team {one_line(str(skill['team']))}" if skill["team"] else str(skill["visibility"])


def _file_of(skill: Mapping[str, Any], path: str) -> str:
    files = {"SKILL.md": skill["document"], **(skill["contents"] or {})}
    if path not in files:
        known = one_line(", ".join(files))
        raise SkillRefusedError(f"The skill {skill['name']} has no file {path!r}. It has {known}.")
    return str(files[path])


async def _found(client: SkillsClient, name: str) -> Mapping[str, Any]:
    skill = await client.find(name)
    if skill is None:
        near = get_close_matches(name, [str(each["name"]) for each in await client.all()], 3)
        meant = f"Did you mean {' or '.join(near)}?" if near else "`platform-engineer skills list` shows all skills."
        raise SkillRefusedError(f"There is no skill {name!r}. {meant}")
    return skill


def _not_stored(skill: Mapping[str, Any]) -> SkillRefusedError:
    origin = f" ({one_line(str(skill['origin']))})" if skill["origin"] else ""
    return SkillRefusedError(
        f"{skill['name']} comes from the source {skill['source']}{origin}: change it there. A skill of the same name "
        "that you add with `platform-engineer skills add` overrides it."
    )


def _checked(path: Path) -> CheckedSkill:
    try:
        return check_path(path)
    except InvalidSkillError as error:
        raise SkillRefusedError(f"{path} cannot be used as a skill:\n{indented(str(error))}") from None


def _say_problems(status: SkillsStatus) -> None:
    for problem in status.problems[:_MAX_PROBLEMS]:
        print_note(one_line(problem))
    if (more := len(status.problems) - _MAX_PROBLEMS) > 0:
        print_note(f"{more} more problems; `platform-engineer skills refresh --json` has them all.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
