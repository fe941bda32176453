"""Shared by the sandbox servers: registering tools, and resolving names in arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from mcp.types import ToolAnnotations
from pydantic import BeforeValidator, StringConstraints

from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.sandbox.records import Employee
from ai_platform_engineering.sandbox.store import SandboxError, SandboxSession

Tool = Callable[..., dict[str, Any]]
NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Headline = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]


def new_server(
    name: str, *, reads: Sequence[Tool], writes: Sequence[Tool] = (), destructive: Sequence[Tool] = ()
) -> ToolServer:
    """A server with these tools, annotated with their effects."""
    server = ToolServer(name)
    for tools, read_only, destroys in ((reads, True, False), (writes, False, False), (destructive, False, True)):
        for tool in tools:
            annotations = ToolAnnotations(
                title=_title(tool), readOnlyHint=read_only, destructiveHint=destroys, openWorldHint=False
            )
            server.tool(_with_tool_errors(tool), annotations=annotations)
    return server


def choice(*allowed: str) -> BeforeValidator:
    """Validator for an argument with fixed values, without regard to case. Other values are a readable `ToolError`."""
    by_folded = {value.casefold(): value for value in allowed}

    def match(value: object) -> object:
        if value is None:
            return None
        chosen = by_folded.get(str(value).strip().casefold())
        if chosen is None:
            raise ToolError(f"{value!r} is not allowed. Choose one of: {', '.join(allowed)}.")
        return chosen

    return BeforeValidator(match)


def unknown(kind: str, name: object, known: Iterable[str]) -> ToolError:
    return ToolError(f"There is no {kind} {name!r}. Choose one of: {', '.join(known)}.")


def find_person(session: SandboxSession, name: str) -> Employee:
    """The person with this login, full name or email address; `me` is the user of the sandbox."""
    wanted = name.strip().lstrip("@").casefold()
    if wanted == "me":
        wanted = session.organization().me
    people = session.all(Employee)
    for person in people:
        if wanted in (person.login, person.name.casefold(), person.email):
            return person
    raise unknown("person", name, (f"{person.login} ({person.name})" for person in people))


def full_names(session: SandboxSession) -> dict[str | None, str | None]:
    """Full names by login. None maps to None, for records without an assignee."""
    return {None: None, **{person.login: person.name for person in session.all(Employee)}}


def contains_words(query: str, *texts: str) -> bool:
    """Whether every word of the query occurs in one of the texts."""
    text = " ".join(texts).casefold()
    return all(word in text for word in query.casefold().split())


def _title(tool: Tool) -> str:
    return tool.__name__.rpartition("__")[2].replace("_", " ").capitalize()


def _with_tool_errors(tool: Tool) -> Tool:
    @functools.wraps(tool)
    def wrapped(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return tool(*args, **kwargs)
        except SandboxError as error:
            raise ToolError(str(error)) from error

    return wrapped
