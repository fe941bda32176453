"""Who may approve a tool call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from ai_platform_engineering.identity.principal import Principal

_GROUP: Final = "group:"
_SIGN_IN: Final = "You are not signed in, so the server cannot tell who you are: sign in, or use a key of your own."
_OWN_REQUEST: Final = "You asked for this, so another person has to approve it. You can reject it."
_MAX_NAMES: Final = 5


@dataclass(frozen=True, slots=True)
class Deciders:
    """The subjects and groups that may approve. Without any, everybody who may answer in the conversation may.

    `four_eyes`: not the principal that asked for the call.
    """

    subjects: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    four_eyes: bool = False

    @classmethod
    def parse(cls, names: str | Iterable[str], *, four_eyes: bool = False) -> Self:
        """The deciders named by a list, or by a text with commas: subjects, and groups as `group:<name>`."""
        given = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
        groups = {name.removeprefix(_GROUP).strip() for name in given if name.startswith(_GROUP)}
        subjects = {name for name in given if not name.startswith(_GROUP)}
        return cls(frozenset(subjects - {""}), frozenset(groups - {""}), four_eyes)

    @property
    def anybody(self) -> bool:
        """Whether everybody who may answer in the conversation may approve."""
        return not (self.subjects or self.groups)

    def refusal(self, principal: Principal, requester: Principal) -> str | None:
        """None if `principal` may approve what `requester` asked for. Otherwise a sentence that says why not, and who
        may."""
        if self.anybody and not self.four_eyes:
            return None
        if principal.subject is None:
            return f"{self.in_words()} {_SIGN_IN}"
        if not self.anybody and principal.subject not in self.subjects and not principal.groups & self.groups:
            return f"{self.in_words()} You are {principal.subject}."
        if self.four_eyes and principal.subject == requester.subject:
            return f"{self.in_words()} {_OWN_REQUEST}"
        return None

    def in_words(self) -> str:
        """A sentence that says who may approve."""
        names = [*sorted(self.subjects), *(f"members of {group}" for group in sorted(self.groups))]
        if len(names) > _MAX_NAMES:
            names = [*names[:_MAX_NAMES], f"{len(names) - _MAX_NAMES} more"]
        match names:
            case []:
                who = "Everybody in this conversation"
            case [name]:
                who = f"Only {name}"
            case [*others, last]:
                who = f"Only {', '.join(others)} and {last}"
        exception = ", except the person who asked for it" if self.four_eyes else ""
        return f"{who} may approve this{exception}."

    def facts(self) -> dict[str, Any]:
        """The deciders as a JSON object."""
        return {"subjects": sorted(self.subjects), "groups": sorted(self.groups), "four_eyes": self.four_eyes}

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """The deciders of `facts`. Anything else than what `facts` returns raises `ValueError`, so that damaged
        data are never read as `anybody`."""
        match facts:
            case {"subjects": [*subjects], "groups": [*groups], "four_eyes": bool(four_eyes)}:
                return cls(_texts(subjects), _texts(groups), four_eyes)
            case _:
                raise ValueError("not the JSON object of deciders")


def _texts(values: Sequence[Any]) -> frozenset[str]:
    if not all(isinstance(value, str) and value for value in values):
        raise ValueError("subjects and groups of deciders must be texts")
    return frozenset(values)
