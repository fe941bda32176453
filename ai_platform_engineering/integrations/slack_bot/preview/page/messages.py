"""One message as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from ai_platform_engineering.integrations.slack_bot.preview.messages import (
    BlockPart,
    Part,
    PlanPart,
    SharedFile,
    SlackMessage,
    TaskCard,
    TextPart,
)
from ai_platform_engineering.integrations.slack_bot.preview.mrkdwn import Span, Spans, spans_of
from ai_platform_engineering.integrations.slack_bot.preview.page.html import Html, joined, tag
from ai_platform_engineering.integrations.slack_bot.preview.page.markdown import markdown
from ai_platform_engineering.integrations.slack_bot.preview.shapes import (
    Control,
    Controls,
    Heading,
    Paragraph,
    Rule,
    Shape,
    shapes_of,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import CardStatus

_IN_WORDS: Final[Mapping[CardStatus, str]] = {
    "pending": "not begun",
    "in_progress": "in progress",
    "complete": "done",
    "error": "failed",
}
_SHOWN_OF_A_FILE: Final = 20_000

Names = Mapping[str, str]


def message_html(message: SlackMessage, names: Names, bot: str) -> Html:
    name = names.get(message.author, message.author)
    by_bot = message.author == bot
    said: Iterable[Html] = (
        [tag("p", "This message was deleted.", class_="small")] if message.deleted else _content(message, names)
    )
    return tag(
        "li",
        tag(
            "article",
            tag("span", name[:1].upper(), class_="face bot" if by_bot else "face", aria_hidden="true"),
            tag("header", tag("strong", name), *_remarks(message, by_bot=by_bot)),
            tag("div", *said, class_="said"),
        ),
        class_="message private" if message.ephemeral_for else "message",
    )


def status_html(status: str, name: str) -> Html:
    return tag("li", tag("p", f"{name} {status}", class_="status"), class_="message")


def _remarks(message: SlackMessage, *, by_bot: bool) -> Iterable[Html]:
    if by_bot:
        yield tag("span", "app", class_="badge")
    at = datetime.fromtimestamp(float(message.ts), UTC)
    yield tag("time", f"{at:%H:%M}", datetime=at.isoformat(timespec="seconds"))
    if message.ephemeral_for:
        yield tag("span", "Only you can see this", class_="small")
    if message.edited:
        yield tag("span", "(edited)", class_="small")


def _content(message: SlackMessage, names: Names) -> Iterable[Html]:
    for part in message.parts:
        yield from _part(part, names)
    if message.streaming:
        yield tag("span", class_="writing", aria_hidden="true")
    if message.expired:
        yield tag("p", "Slack ended this message before it was complete.", class_="small")
    yield from map(_file, message.files)
    if message.reactions:
        yield tag("p", " ".join(f":{name}:" for name, _ in message.reactions), class_="small")


def _part(part: Part, names: Names) -> Iterable[Html]:
    match part:
        case TextPart(text=text, mrkdwn=True):
            yield _prose(spans_of(text, names))
        case TextPart(text=text):
            yield markdown(text, names)
        case PlanPart(title=title, cards=cards):
            yield tag("section", *_heading(title), tag("ol", *map(_card, cards)), class_="plan")
        case BlockPart(json=block):
            yield from map(_shape, shapes_of(block, names))


def _heading(title: str) -> Iterable[Html]:
    if title:
        yield tag("h2", title)


def _card(card: TaskCard) -> Html:
    # The style draws the status symbol; the text is for screen readers.
    head = tag("span", tag("span", f"{_IN_WORDS.get(card.status, card.status)}: ", class_="unseen"), card.title)
    more = [tag("small", text.strip()) for text in (card.details, card.output) if text.strip()]
    return tag("li", head, *more, class_=f"card {card.status}")


def _shape(shape: Shape) -> Html:
    match shape:
        case Heading(text):
            return tag("h2", text)
        case Paragraph(spans, small):
            return _prose(spans, "small" if small else "")
        case Rule():
            return tag("hr")
        case Controls(controls, label):
            asked = [tag("strong", label)] if label else []
            return tag("p", *asked, *map(_control, controls), class_="controls")


def _control(control: Control) -> Html:
    if control.look in ("choice", "entry"):
        return tag("span", control.label or "\u00a0", class_=f"control {control.look}")
    return tag("button", control.label, type="button", disabled=True, class_=f"control {control.look}")


def _prose(spans: Spans, look: str = "") -> Html:
    return tag("div", *map(_span, spans), class_=f"prose {look}".rstrip())


def _span(span: Span) -> Html:
    shown = tag("pre", tag("code", span.text)) if span.block else _lines(span.text)
    if span.code and not span.block:
        shown = tag("code", shown)
    for wanted, name in ((span.bold, "strong"), (span.italic, "em"), (span.struck, "s")):
        shown = tag(name, shown) if wanted else shown
    return tag("a", shown, href=span.link, rel="noopener noreferrer nofollow", target="_blank") if span.link else shown


def _lines(text: str) -> Html:
    first, *others = text.split("\n")
    return joined(first, *(piece for line in others for piece in (tag("br"), line)))


def _file(file: SharedFile) -> Html:
    text = file.content.decode(errors="replace")
    size = f"{file.name}, {len(file.content):,} bytes"
    shown = text[:_SHOWN_OF_A_FILE]
    rest = [tag("p", "The rest is left out here.", class_="small")] if len(text) > len(shown) else []
    summary = tag("summary", tag("strong", file.title or file.name), tag("small", size))
    return tag("details", summary, tag("pre", tag("code", shown)), *rest, class_="file")
