"""Block Kit, reduced to a few shapes that both renderers draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from ai_platform_engineering.integrations.slack_bot.preview.messages import BlockJson, rich_text
from ai_platform_engineering.integrations.slack_bot.preview.mrkdwn import Span, Spans, spans_of

Look = Literal["plain", "primary", "danger", "choice", "entry"]


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    spans: Spans
    small: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    pass


@dataclass(frozen=True, slots=True)
class Control:
    """A button, a menu or an input."""

    label: str
    look: Look = "plain"


@dataclass(frozen=True, slots=True)
class Controls:
    controls: tuple[Control, ...]
    label: str = ""
    """The label of an input."""


Shape = Heading | Paragraph | Rule | Controls


def shapes_of(block: BlockJson, names: Mapping[str, str]) -> tuple[Shape, ...]:
    shapes: tuple[Shape, ...]
    match block:
        case {"type": "header", "text": text}:
            shapes = (Heading(_plain(text)),)
        case {"type": "divider"}:
            shapes = (Rule(),)
        case {"type": "section"}:
            texts = [Paragraph(_spans(text, names)) for text in (block.get("text"), *block.get("fields", ())) if text]
            shapes = (*texts, *_controls([block["accessory"]] if "accessory" in block else []))
        case {"type": "context", "elements": elements}:
            spans = (_spans(element, names) for element in elements)
            shapes = (Paragraph(tuple(chain.from_iterable(_parted(spans))), small=True),)
        case {"type": "actions" | "context_actions", "elements": elements}:
            shapes = _controls(elements)
        case {"type": "input", "label": label, "element": element}:
            optional = " (optional)" if block.get("optional") else ""
            asked = Controls(tuple(_control(element)), f"{_plain(label)}{optional}")
            hint = _plain(block.get("hint"))
            shapes = (asked, Paragraph((Span(hint),), small=True)) if hint else (asked,)
        case {"type": "rich_text", "elements": elements}:
            shapes = tuple(Paragraph((_rich(element),)) for element in elements)
        case _:
            shapes = (Paragraph((Span(str(block.get("alt_text") or f"[{block.get('type', 'block')}]")),), small=True),)
    return shapes


def _spans(text: object, names: Mapping[str, str]) -> Spans:
    match text:
        case {"type": "mrkdwn", "text": str(written)}:
            return spans_of(written, names)
        case {"type": "plain_text", "text": str(written)} | {"alt_text": str(written)}:
            return (Span(written),)
        case _:
            return ()


def _rich(element: BlockJson) -> Span:
    is_code = element.get("type") == "rich_text_preformatted"
    return Span(rich_text(element), code=is_code, block=is_code)


def _parted(texts: Iterable[Spans]) -> Iterable[Spans]:
    for number, spans in enumerate(texts):
        if number:
            yield (Span("  "),)
        yield spans


def _plain(text: Any) -> str:
    return str(text.get("text", "")) if isinstance(text, Mapping) else ""


def _controls(elements: Iterable[BlockJson]) -> tuple[Controls, ...]:
    controls = tuple(chain.from_iterable(_control(element) for element in elements))
    return (Controls(controls),) if controls else ()


def _control(element: BlockJson) -> Iterable[Control]:
    match element:
        case {"type": "button" | "icon_button" | "workflow_button", "text": text}:
            style = element.get("style")
            yield Control(_plain(text), style if style in ("primary", "danger") else "plain")
        case {"type": "feedback_buttons"}:
            yield Control(_plain(element.get("positive_button", {}).get("text")))
            yield Control(_plain(element.get("negative_button", {}).get("text")))
        case {"type": "checkboxes" | "radio_buttons", "options": options}:
            yield from (Control(_plain(option.get("text")), "choice") for option in options)
        case {"type": str(kind)} if kind.endswith("_select") or kind == "overflow":
            yield Control(_chosen(element) or _plain(element.get("placeholder")) or "...", "choice")
        case {"type": "image"}:
            return
        case _:
            yield Control(str(element.get("initial_value") or _plain(element.get("placeholder"))), "entry")


def _chosen(element: BlockJson) -> str:
    one = element.get("initial_option")
    chosen = [one] if one else element.get("initial_options", ())
    return ", ".join(_plain(option.get("text")) for option in chosen)
