"""Input values of a workflow that a request states. Only clear ones are used: a form asks for the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.lexical import SYNONYM, best_similarity, identifier_words, stem
from ai_platform_engineering.offline_model.english.requests import NAME, is_common
from ai_platform_engineering.offline_model.english.sentences import QUOTED, quoted_texts
from ai_platform_engineering.offline_model.english.vocabulary import STATES, word_set
from ai_platform_engineering.offline_model.workflows.matching import WorkflowRequest

_CALLED = re.compile(r"\b(?:called|named)\s+(?=\S)", re.I)
_TOKEN = re.compile(rf"@?(?P<token>{NAME})")
_BECAUSE = re.compile(r"\b(?:because|since)\s+(?P<reason>\S[^\n]*?)\s*[.!]?\s*$", re.I)
_PROSE = frozenset(map(stem, word_set("description summary body message text comment note reason title purpose")))
_IDENTIFYING = frozenset(map(stem, word_set("name id key identifier slug")))
_CALLED_BY_A_WORD = frozenset(map(stem, word_set("application app service repository repo project component")))
"""Things whose name is a plain word, not a number or a key."""
_SCALES = frozenset(map(stem, word_set("priority urgency severity")))
_NO_NAMES = word_set("called named titled workflow")
_OPPOSITES = {"private": "public", "public": "private"}


def prefilled(wanted: WorkflowRequest, known: frozenset[str]) -> dict[str, str | bool]:
    """Values by name of input. `known` are stems that are not names of things."""
    known |= wanted.workflow.vocabulary
    inputs = wanted.workflow.inputs
    found = {
        name: value
        for name in inputs
        if (value := _stated_value(name, _without_longer(name, inputs, wanted.text), known)) is not None
    }
    thing = _naming_input(wanted)
    if thing is not None and thing not in found and (name := _name(thing, wanted, known)) is not None:
        found[thing] = name
    return {name: found[name] for name in inputs if name in found}


def _without_longer(name: str, inputs: Sequence[str], text: str) -> str:
    """The text without the names of other inputs that end with this one: a "ticket project" is no "project"."""
    for other in inputs:
        if other != name and identifier_words(other)[-len(identifier_words(name)) :] == identifier_words(name):
            text = re.sub(rf"\b{_spelled(other)}\b", lambda match: "." * len(match[0]), text, flags=re.I)
    return text


def _spelled(name: str) -> str:
    return r"[\s_-]+".join(map(re.escape, identifier_words(name)))


def _stated_value(name: str, text: str, known: frozenset[str]) -> str | bool | None:
    """The value that the request states for an input by its name."""
    own = _spelled(name)
    stems = {stem(word) for word in identifier_words(name)}
    if match := re.search(rf"\b{own}\s*[:=]\s*(?=\S)", text, re.I):
        return _value_at(text, match.end(), is_prose=bool(stems & _PROSE))
    if match := re.search(rf"\b{own}\s+(?:(?:is|of|named|called)\s+)?(?=[\"“`'])", text, re.I):
        return _quoted_at(text, match.end())
    if stems & _PROSE:
        because = _BECAUSE.search(text) if "reason" in stems else None
        return because["reason"] if because else None
    if stems & _SCALES:
        return _scale_value(own, text)
    stated = _boolean_value(name, own, text)
    return _name_after(own, text, known) if stated is None else stated


def _name_after(own: str, text: str, known: frozenset[str]) -> str | None:
    """A name after the name of the input: "revision 2"."""
    tokens = [match["token"] for match in re.finditer(rf"\b{own}\s+(?:is\s+|to\s+)?(?P<token>{NAME})", text, re.I)]
    return next((token for token in tokens if _is_name(token, known)), None)


def _scale_value(own: str, text: str) -> str | None:
    """A value before or after the name of its scale: "high priority"."""
    match = re.search(rf"\b(?P<before>[\w-]+)\s+{own}\b|\b{own}\s+(?P<after>[\w-]+)", text, re.I)
    return next((word for word in (match.groups() if match else ()) if word and word.lower() in STATES), None)


def _boolean_value(name: str, own: str, text: str) -> bool | None:
    """The value of a boolean input: "without a ticket", "a public repo"."""
    if match := re.search(rf"\bwith(?P<out>out)?\s+(?:an?\s+|any\s+)?{own}\b(?!\s*[\"“`':=])", text, re.I):
        return match["out"] is None
    opposite = _OPPOSITES.get(name)
    if opposite is None:
        return None
    stated = lexical.states(text, (name,))
    denied = lexical.states(text, (opposite,)) if stated is None else None
    return stated if denied is None else not denied


def _naming_input(wanted: WorkflowRequest) -> str | None:
    """The input that names the thing which the workflow is about."""
    title = lexical.terms(wanted.workflow.title)
    for name in wanted.workflow.inputs:
        words = [stem(word) for word in identifier_words(name)]
        kinds = [word for word in words if word not in _IDENTIFYING]
        if all(best_similarity(kind, title) >= SYNONYM for kind in kinds):
            return name
    return None


def _name(thing: str, wanted: WorkflowRequest, known: frozenset[str]) -> str | None:
    if called := _CALLED.search(wanted.text):
        return _value_at(wanted.text, called.end(), is_prose=False)
    if len(quoted := quoted_texts(wanted.text)) == 1:
        return quoted[0]
    names = [word for word in wanted.about if _is_name(word, known) and re.search(r"[\d_./-]", word)]
    words = {stem(word) for word in identifier_words(thing)}
    kinds = words - _IDENTIFYING or set(lexical.terms(wanted.workflow.title))
    if kinds & _CALLED_BY_A_WORD:
        names += _bare_names(wanted, known)
    else:
        names = [name for name in names if re.search(r"\d", name)]
    return names[0] if len(set(names)) == 1 else None


def _bare_names(wanted: WorkflowRequest, known: frozenset[str]) -> Sequence[str]:
    """Plain words that can be names. In "a python service", "python" is no name: it describes the service."""
    about = wanted.about
    return [
        word
        for before, word in zip(("", *about), about, strict=False)
        if _is_name(word, known) and (not wanted.indefinite or best_similarity(stem(before), known) > 0)
    ]


def _is_name(token: str, known: frozenset[str]) -> bool:
    return token.isdigit() or not (token.lower() in _NO_NAMES or is_common(token, known))


def _value_at(text: str, start: int, *, is_prose: bool) -> str | None:
    """The value that begins at `start`: the quoted text, else for prose the rest of the line, else one name."""
    if (quoted := _quoted_at(text, start)) is not None:
        return quoted
    if is_prose:
        return re.split(r"\n|;\s|,\s+\w+\s*[:=]", text[start:], maxsplit=1)[0].strip() or None
    token = _TOKEN.match(text, start)
    return token["token"] if token else None


def _quoted_at(text: str, start: int) -> str | None:
    match = QUOTED.match(text, start)
    return next(group for group in match.groups() if group) if match else None
