"""The YAML between the two --- lines of a SKILL.md, restricted to mappings, lists and strings.

Scalars stay strings as written: `version: 1.10` is the string 1.10, and dates are strings too. Anchors, aliases and
tags are refused, so that a short text cannot expand to a large value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import yaml

from ai_platform_engineering.skills_middleware.skill import DOCUMENT, InvalidSkillError, SkillProblem
from ai_platform_engineering.utils.characters import quoted
from ai_platform_engineering.utils.yaml_files import FAST_LOADER

Value = str | list["Value"] | dict[str, "Value"] | None

MAX_FRONT_MATTER_SIZE: Final = 16 * 1024
MAX_NESTING: Final = 5

_BEGIN: Final = re.compile(r"---[ \t]*\r?\n")
_END: Final = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TEXT_TAGS: Final = frozenset({None, "!", "tag:yaml.org,2002:str"})


def split(text: str) -> tuple[str, str]:
    """Split a SKILL.md into front matter and instructions."""
    begin = _BEGIN.match(text)
    if begin is None:
        raise _invalid("front_matter", "the file must begin with a --- line, YAML front matter and another --- line")
    end = _END.search(text, begin.end())
    if end is None:
        raise _invalid("front_matter", "the front matter has no --- line at its end")
    return text[begin.end() : end.start()], text[end.end() :]


def parse(text: str) -> dict[str, Value]:
    """Parse front matter into keys and values."""
    if len(text) > MAX_FRONT_MATTER_SIZE:
        raise _invalid(
            "front_matter_too_large",
            f"the front matter has {len(text)} characters; {MAX_FRONT_MATTER_SIZE} are allowed",
        )
    events = yaml.parse(text, Loader=FAST_LOADER)
    try:
        documents = [_value(events, event, 0) for event in events if _begins_value(event)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The front matter starts in the second line of the file.
        line = f" in line {mark.line + 2}" if mark is not None else ""
        raise _invalid("yaml", f"the front matter is not valid YAML: {error.problem}{line}") from None
    except yaml.YAMLError:
        raise _invalid("yaml", "the front matter is not valid YAML: it has a character that YAML forbids") from None
    match documents:
        case [dict() as keys]:
            return keys
        case []:
            raise _invalid("front_matter", "the front matter is empty; name and description are required")
        case _:
            raise _invalid("front_matter", "the front matter must be one mapping of keys to values")


def _begins_value(event: yaml.Event) -> bool:
    return isinstance(event, yaml.NodeEvent)


def _value(events: Iterator[yaml.Event], event: yaml.Event, depth: int) -> Value:
    _check(event, depth)
    match event:
        case yaml.ScalarEvent():
            return None if event.style is None and event.tag is None and event.value in _NULLS else str(event.value)
        case yaml.SequenceStartEvent():
            items: list[Value] = []
            while not isinstance(item := next(events), yaml.SequenceEndEvent):
                items.append(_value(events, item, depth + 1))
            return items
        case _:
            return _mapping(events, depth)


def _mapping(events: Iterator[yaml.Event], depth: int) -> dict[str, Value]:
    keys: dict[str, Value] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        _check(event, depth)
        if not isinstance(event, yaml.ScalarEvent):
            raise _invalid("yaml", f"a key{_place(event)} is a list or a mapping; keys are texts")
        key = str(event.value)
        if key in keys:
            raise _invalid("yaml_duplicate_key", f"the key {quoted(key)} occurs twice{_place(event)}")
        keys[key] = _value(events, next(events), depth + 1)
    return keys


def _check(event: yaml.Event, depth: int) -> None:
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise _invalid("yaml_alias", f"the front matter has an anchor or alias{_place(event)}; write the value out")
    is_collection = isinstance(event, yaml.CollectionStartEvent)
    if is_collection and depth >= MAX_NESTING:
        raise _invalid("yaml_depth", f"the front matter is nested deeper than {MAX_NESTING} levels{_place(event)}")
    tag = getattr(event, "tag", None)
    if tag is not None and (is_collection or tag not in _TEXT_TAGS):
        raise _invalid("yaml_tag", f"the tag {quoted(tag)}{_place(event)} is not allowed")


def _place(event: yaml.Event) -> str:
    return f" in line {event.start_mark.line + 2}" if event.start_mark is not None else ""


def _invalid(code: str, message: str) -> InvalidSkillError:
    return InvalidSkillError([SkillProblem(code, message, DOCUMENT)])
