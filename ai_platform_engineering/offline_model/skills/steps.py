"""The procedure of a skill: its numbered steps, each with the tag of its agent."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ai_platform_engineering.offline_model.english.sentences import requested_changes

KNOWLEDGE_TAG: Final = "knowledge base"
MAX_STEPS: Final = 30
MAX_STEP_LENGTH: Final = 1000
"""Maximum characters of a step. Skills are untrusted text, and a longer step is no request."""
ARGUMENTS: Final = "$ARGUMENTS"
_FRAME: Final = re.compile(r"<skill\b[^>\n]*>\n(?P<text>.*?)\n?</skill>", re.S)
_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_HEADING: Final = re.compile(r"^#{1,6}\s+(?P<title>\S.*)$")
_STEPS: Final = re.compile(r"^(?:the\s+)?(?:steps|procedure|instructions|what\s+to\s+do)\b", re.I)
_ITEM: Final = re.compile(r"^ {0,3}\d{1,2}[.)]\s+(?P<text>\S.*)$")
_TAG: Final = re.compile(r"^\W{0,2}\[(?P<tag>[^\]\n]{1,60})\]\W{0,2}\s+(?P<text>\S.*)$", re.S)
_OPTIONAL_IF: Final = re.compile(r"^\(?optional(?:ly)?[,;]?\s+(?P<condition>[^:)]+)[:)]\s+(?P<text>\S.*)$", re.I | re.S)
_IF: Final = re.compile(
    r"^\(?(?P<condition>(?:only\s+)?(?:if|when|unless|after|once|in\s+case)\s[^:,)]+)[:,)]\s+(?P<text>\S.*)$",
    re.I | re.S,
)
_PLAIN_OPTIONAL: Final = re.compile(r"^\(?optional(?:ly)?\)?\s*[:.,)]?\s+(?P<text>\S.*)$", re.I | re.S)
_GAP: Final = re.compile(
    r"""(?<=\w)\s+[.,:;?!](?=\s|$) | \w\s{2,}\w | //(?=[\s.,;)]|$) | \s["”](?=[\s.,;]|$) | \s$""", re.X
)
_KIND: Final = re.compile(
    r"\b(?:the|an?)\s+(?P<kind>[a-z]+)(?:\s+\$ARGUMENTS|[ ]{2,}(?=\w)|\s+(?=[.,:;](?:\s|$)))", re.I
)


@dataclass(frozen=True, slots=True)
class SkillStep:
    """One numbered step. A step with a condition is proposed to a person instead of done."""

    text: str
    tag: str = ""
    condition: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether the skill's subject is missing in it: the placeholder is unfilled or was replaced by nothing."""
        return ARGUMENTS in self.text or bool(_GAP.search(self.text))

    @property
    def title(self) -> str:
        """The step up to the first colon, without details."""
        return re.split(r":\s", self.text, maxsplit=1)[0].rstrip(" .;:?!")


@dataclass(frozen=True, slots=True)
class SkillProcedure:
    """A skill that was read: its steps, and its full text."""

    steps: tuple[SkillStep, ...]
    text: str

    @property
    def needs_arguments(self) -> bool:
        return any(step.is_open for step in self.steps)

    def proposed(self, *, is_named: bool) -> tuple[SkillStep, ...]:
        """Steps that are only proposed: those with a condition, and changes unless a person named the skill."""
        return tuple(
            step for step in self.steps if step.condition is not None or (requested_changes(step.text) and not is_named)
        )

    @property
    def subject(self) -> str:
        """The noun for its subject, for example "service"."""
        kind = _KIND.search(self.text)
        return kind["kind"].lower() if kind else "subject"


@lru_cache(maxsize=64)
def procedure(result: str) -> SkillProcedure:
    """The procedure in the result of reading a skill."""
    frame = _FRAME.search(result)
    text = (frame["text"] if frame else result).replace("&lt;", "<").strip("\n")
    lines = _prose(text)
    items = _items(_section(lines) or lines)[:MAX_STEPS]
    return SkillProcedure(tuple(_step(item[:MAX_STEP_LENGTH]) for item in items), text)


def _prose(text: str) -> list[str]:
    """The lines outside code blocks."""
    found, fenced = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            found.append(line)
    return found


def _section(lines: list[str]) -> list[str]:
    """The lines below the heading of the steps."""
    found: list[str] = []
    inside = False
    for line in lines:
        if heading := _HEADING.match(line):
            if inside:
                break
            inside = bool(_STEPS.match(heading["title"]))
        elif inside:
            found.append(line)
    return found


def _items(lines: list[str]) -> list[str]:
    """The items of the first numbered list, each on one line."""
    found: list[str] = []
    open_item = False
    for line in lines:
        if item := _ITEM.match(line):
            found.append(item["text"])
            open_item = True
        elif _HEADING.match(line):
            if found:
                break
        elif not line.strip():
            open_item = False
        elif open_item and line.startswith(" ") and not line.lstrip().startswith(("- ", "* ")):
            found[-1] = f"{found[-1].rstrip()} {line.strip()}"
    return found


def _step(item: str) -> SkillStep:
    tag = _TAG.match(item)
    text = tag["text"] if tag else item
    name = tag["tag"].strip() if tag else ""
    for pattern in (_OPTIONAL_IF, _IF):
        if conditional := pattern.match(text):
            return SkillStep(_sentence(conditional["text"]), name, conditional["condition"].strip())
    if optional := _PLAIN_OPTIONAL.match(text):
        return SkillStep(_sentence(optional["text"]), name, "")
    return SkillStep(text.rstrip("\n"), name)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
