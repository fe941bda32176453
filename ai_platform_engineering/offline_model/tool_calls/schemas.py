"""Tool profiles for matching: verb, nouns, effect, and the properties of the argument schema."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ai_platform_engineering.offline_model.english.lexical import description_terms, identifier_words, stem
from ai_platform_engineering.offline_model.english.vocabulary import CHANGE_VERBS, GET_VERBS, LIST_VERBS, STOP_WORDS
from ai_platform_engineering.offline_model.messages.tools import BoundTool

Effect = Literal["list", "get", "change"]
_EXAMPLE = re.compile(r"\b(?:for example|such as|e\.g\.),?\s+[`'\"]?([\w#][\w.\-/#]*\w)", re.I)
_KIND_OF = (("type",), ("kind",))
_TYPES = ("string", "integer", "number", "boolean", "array", "object")


@dataclass(frozen=True, slots=True)
class Property:
    """One argument of a tool."""

    name: str
    type: str
    words: tuple[str, ...]
    description: str = ""
    required: bool = False
    choices: tuple[Any, ...] = ()
    pattern: str | None = None
    format: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int = 0
    max_length: int | None = None
    has_default: bool = False
    default: Any = None
    example: str | None = None
    items: Property | None = None
    members: tuple[Property, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ToolProfile:
    """A tool, prepared for matching."""

    tool: BoundTool
    verb: str | None
    """Stem of the verb in its name."""
    effect: Effect
    nouns: tuple[str, ...]
    description: frozenset[str]
    properties: tuple[Property, ...]

    @property
    def vocabulary(self) -> frozenset[str]:
        """Stems that describe the tool and therefore are not names of things."""
        return self.description.union(self.nouns, *(item.words for item in self.properties))

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def required(self) -> tuple[Property, ...]:
        return tuple(item for item in self.properties if item.required)


@dataclass(frozen=True, slots=True, eq=False)
class Toolbox:
    """All tools of an agent. Compared by identity: `toolbox` caches one instance for each set of tools."""

    profiles: tuple[ToolProfile, ...]
    rarity: Mapping[str, float]
    """The weight of a noun: higher, the fewer tools have it in their name."""
    vocabulary: frozenset[str]
    """Stems that describe the tools and therefore are not names of things."""
    kinds: Mapping[str, frozenset[str]]
    """Stems of the values of `type` and `kind` arguments, with the nouns of their tools: a story is an issue."""


@lru_cache(maxsize=256)
def toolbox(tools: tuple[BoundTool, ...]) -> Toolbox:
    profiles = tuple(map(profile, tools))
    frequency = Counter(noun for item in profiles for noun in item.nouns)
    return Toolbox(
        profiles,
        {noun: 1 + 0.4 * math.log(len(profiles) / count) for noun, count in frequency.items()},
        frozenset().union(*(item.vocabulary for item in profiles)),
        _kinds(profiles),
    )


def _kinds(profiles: Sequence[ToolProfile]) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for item in profiles:
        for each in item.properties:
            if each.words[-1:] in _KIND_OF:
                for choice in each.choices:
                    found[stem(str(choice))] = found.get(stem(str(choice)), frozenset()).union(item.nouns)
    return found


@lru_cache(maxsize=4096)
def profile(tool: BoundTool) -> ToolProfile:
    parts = identifier_words(tool.name)
    verb = next((part for part in parts if part in CHANGE_VERBS | LIST_VERBS | GET_VERBS), None)
    if verb in CHANGE_VERBS and tool.read_only:
        verb = None
    schema = json.loads(tool.schema)
    return ToolProfile(
        tool=tool,
        verb=stem(verb) if verb else None,
        effect=_effect(tool, verb),
        nouns=tuple(dict.fromkeys(stem(part) for part in parts if part != verb and part not in STOP_WORDS)),
        description=description_terms(tool.description),
        properties=_properties(schema, schema),
    )


def _effect(tool: BoundTool, verb: str | None) -> Effect:
    if tool.destructive or (verb in CHANGE_VERBS and not tool.read_only):
        return "change"
    if tool.read_only or verb is not None:
        return "list" if verb in LIST_VERBS else "get"
    first = next(iter(identifier_words(tool.description)), "")
    return "change" if first in CHANGE_VERBS or stem(first) in {stem(word) for word in CHANGE_VERBS} else "get"


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Property, ...]:
    required = schema.get("required", ())
    found = [
        _property(name, inner, root, required=name in required)
        for name, inner in schema.get("properties", {}).items()
        if isinstance(inner, Mapping)
    ]
    return tuple(sorted(found, key=lambda item: not item.required))


def _property(
    name: str, schema: Mapping[str, Any], root: Mapping[str, Any], *, required: bool, depth: int = 0
) -> Property:
    schema = _resolved(schema, root)
    kind = _type(schema)
    items = schema.get("items")
    return Property(
        name=name,
        type=kind,
        words=tuple(stem(word) for word in identifier_words(name)),
        description=str(schema.get("description", "")),
        required=required,
        choices=tuple(schema.get("enum", [schema["const"]] if "const" in schema else ())),
        pattern=schema.get("pattern"),
        format=schema.get("format"),
        minimum=_bound(schema, "minimum", "exclusiveMinimum", 1),
        maximum=_bound(schema, "maximum", "exclusiveMaximum", -1),
        min_length=schema.get("minLength", 0),
        max_length=schema.get("maxLength"),
        has_default="default" in schema,
        default=schema.get("default"),
        example=example[1] if (example := _EXAMPLE.search(str(schema.get("description", "")))) else None,
        items=_property(name, items, root, required=False, depth=depth + 1)
        if isinstance(items, Mapping) and depth < 3
        else None,
        members=_properties(schema, root) if kind == "object" and depth < 3 else (),
    )


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """The schema with `$ref` resolved, and with the first alternative of a union that is not null."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/") and depth < 8:
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        return _resolved({**target, **{key: value for key, value in schema.items() if key != "$ref"}}, root, depth + 1)
    for union in ("anyOf", "oneOf", "allOf"):
        alternatives = [option for option in schema.get(union, ()) if option.get("type") != "null"]
        if alternatives and depth < 8:
            rest = {key: value for key, value in schema.items() if key != union}
            return _resolved({**alternatives[0], **rest}, root, depth + 1)
    return schema


def _type(schema: Mapping[str, Any]) -> str:
    declared = schema.get("type")
    options = declared if isinstance(declared, list) else [declared]
    known = next((option for option in options if option in _TYPES), None)
    if known:
        return str(known)
    if choices := schema.get("enum"):
        return "integer" if all(isinstance(choice, int) for choice in choices) else "string"
    return "object" if "properties" in schema else "string"


def _bound(schema: Mapping[str, Any], inclusive: str, exclusive: str, step: int) -> float | None:
    if isinstance(schema.get(inclusive), int | float):
        return float(schema[inclusive])
    if isinstance(schema.get(exclusive), int | float):
        return float(schema[exclusive]) + step
    return None


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """The compiled pattern of a schema; None if Python cannot compile it (JSON Schema uses another dialect)."""
    try:
        return re.compile(pattern)
    except re.error:
        return None
