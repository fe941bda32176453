"""What the sandbox servers share: how a tool is offered, and how names in arguments are understood."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from mcp.types import ToolAnnotations
from pydantic import BeforeValidator, StringConstraints

from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.sandbox.records import Person
from ai_platform_engineering.sandbox.world import Session, WorldError

Tool = Callable[..., dict[str, Any]]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Headline = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]


def new_server(
    name: str, *, reads: Sequence[Tool], writes: Sequence[Tool] = (), destructive: Sequence[Tool] = ()
) -> ToolServer:
    """A server that offers these tools, marked by what they do."""
    server = ToolServer(name)
    for tools, read_only, destroys in ((reads, True, False), (writes, False, False), (destructive, False, True)):
        for tool in tools:
            annotations = ToolAnnotations(
                title=_title(tool), readOnlyHint=read_only, destructiveHint=destroys, openWorldHint=False
            )
            server.tool(_world_errors_told(tool), annotations=annotations)
    return server


def choice(*allowed: str) -> BeforeValidator:
    """For an argument with fixed values: upper and lower case are the same, anything else is refused in plain words."""
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


def find_person(session: Session, name: str) -> Person:
    """The person with this login or full name; `me` is the person who asks."""
    wanted = name.strip().lstrip("@").casefold()
    if wanted == "me":
        wanted = session.company().me
    people = session.all(Person)
    for person in people:
        if wanted in (person.login, person.name.casefold(), person.email):
            return person
    raise unknown("person", name, (f"{person.login} ({person.name})" for person in people))


def full_names(session: Session) -> dict[str | None, str | None]:
    """Login to full name, and nobody to nobody."""
    return {None: None, **{person.login: person.name for person in session.all(Person)}}


def contains_words(query: str, *texts: str) -> bool:
    """Whether every word of the query occurs in one of the texts."""
    text = " ".join(texts).casefold()
    return all(word in text for word in query.casefold().split())


def _title(tool: Tool) -> str:
    return tool.__name__.rpartition("__")[2].replace("_", " ").capitalize()


def _world_errors_told(tool: Tool) -> Tool:
    @functools.wraps(tool)
    def wrapped(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return tool(*args, **kwargs)
        except WorldError as error:
            raise ToolError(str(error)) from error

    return wrapped
