"""The whole page: the thread at its end, and a slider for every earlier moment."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

from ai_platform_engineering.integrations.slack_bot.preview.page.html import Html, tag
from ai_platform_engineering.integrations.slack_bot.preview.page.messages import Names, message_html, status_html
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Moment, Transcript

MAX_MOMENTS: Final = 400
MAX_CHARACTERS: Final = 4_000_000
NOTE: Final = "A sketch of what people see in Slack, transcript_blocks without Slack. Buttons do nothing here."


def page(title: str, moments: Sequence[Moment], names: Names, bot: str) -> str:
    """A self-contained HTML page. Without scripts it shows the last of `moments`."""
    items = _items(moments[-1].transcript, names, bot) if moments else []
    style, script = _asset("page.css"), _asset("page.js")
    head = (
        tag("meta", charset="utf-8"),
        # Even unescaped content could load nothing, run nothing and send nothing.
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} - Slack preview"),
        tag("style", Html(style)),
    )
    body = (
        tag("header", tag("h1", title), tag("p", NOTE), class_="top"),
        tag("main", tag("ol", *items, id="thread", class_="thread")),
        tag("nav", *_slider(), id="time", aria_label="Moments of this thread", hidden=True),
        tag("script", Html(_moments_json(moments, names, bot)), type="application/json", id="moments"),
        tag("script", Html(script)),
    )
    return "<!doctype html>\n" + tag("html", tag("head", *head), tag("body", *body), lang="en") + "\n"


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_fingerprint(style)}",
            f"script-src {_fingerprint(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _fingerprint(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _slider() -> tuple[Html, ...]:
    return (
        tag("button", "Play", type="button", id="play"),
        tag("button", "◀", type="button", id="back", aria_label="Back"),
        tag("input", type="range", id="at", min="0", value="0", step="1", aria_label="Moment"),
        tag("button", "▶", type="button", id="on", aria_label="On"),
        tag("output", "", id="when", for_="at"),
    )


def _items(transcript: Transcript, names: Names, bot: str) -> list[Html]:
    items = [message_html(message, names, bot) for message in transcript.messages]
    return [*items, status_html(transcript.status, names.get(bot, bot))] if transcript.status else items


def _moments_json(moments: Sequence[Moment], names: Names, bot: str) -> str:
    """Every item once, and for each moment its time and the numbers of its items."""
    for limit in (MAX_MOMENTS, MAX_MOMENTS // 4, MAX_MOMENTS // 20):
        numbers: dict[str, int] = {}
        timeline: list[tuple[float, list[int]]] = []
        for moment in thinned(moments, limit):
            items = _items(moment.transcript, names, bot)
            timeline.append((round(moment.at, 2), [numbers.setdefault(str(item), len(numbers)) for item in items]))
        if sum(map(len, numbers)) <= MAX_CHARACTERS:
            break
    # An escaped `<` cannot close the script element.
    return json.dumps({"items": list(numbers), "moments": timeline}).replace("<", "\\u003c")


def thinned(moments: Sequence[Moment], limit: int) -> list[Moment]:
    """At most `limit` of the moments, with the first and the last one."""
    if len(moments) <= limit:
        return list(moments)
    step = (len(moments) - 1) / (limit - 1)
    return [moments[round(number * step)] for number in range(limit)]
