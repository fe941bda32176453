"""The page that shows a thread: all that people see is there, and nothing that models write is anything but text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.integrations.slack_bot.preview.mrkdwn import Span, spans_of
from ai_platform_engineering.integrations.slack_bot.preview.page.document import (
    MAX_CHARACTERS,
    MAX_MOMENTS,
    page,
    thinned,
)
from ai_platform_engineering.integrations.slack_bot.preview.page.html import Html, tag
from ai_platform_engineering.integrations.slack_bot.preview.page.markdown import markdown
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Moment, SlackWorkspace

NAMES = {"UBOT": "Platform Engineer", "U1": "Robin"}
ROOT = "1768210860.000001"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![picture](https://evil.example/x.png)",
    "[press](javascript:alert(1))",
    "<javascript:alert(1)|press>",
    "</style><style>*{display:none}</style>",
    '<https://evil.example/"onmouseover=alert(1)|here>',
    "```html\n</code></pre><iframe src='https://evil.example'></iframe>\n```",
    "<!--<script>",
    '" autofocus onfocus="alert(1)',
    "&lt;script&gt;alert(1)&lt;/script&gt;",
]
OURS = {"script": 2, "style": 1, "meta": 4, "input": 1}
HARMFUL = ["img", "iframe", "object", "embed", "link", "base", "form", "svg", "math", "audio", "video", "template"]


class Thread:
    """A thread in a workspace, and what people saw of it."""

    def __init__(self, question: str = "what is wrong?") -> None:
        self.workspace = SlackWorkspace("UBOT", dict(NAMES))
        self.moments: list[Moment] = []
        self.workspace.say("U1", "C1", ROOT, question)
        self._see()

    def call(self, method: str, made: str = "", **arguments: Any) -> None:
        where = {"channel": "C1", "thread_ts": ROOT, "channel_id": "C1"}
        self.workspace.apply(method, where | arguments, now=1768210860.0 + len(self.moments), new_id=made)
        self._see()

    def page(self) -> BeautifulSoup:
        return BeautifulSoup(page("A thread", self.moments, NAMES, "UBOT"), "html.parser")

    def _see(self) -> None:
        self.moments.append(Moment(float(len(self.moments)), self.workspace.transcript("C1", ROOT, viewer="U1")))


def everything(text: str) -> Thread:
    """A thread that has `text` wherever text can be."""
    plain = {"type": "plain_text", "text": text}
    thread = Thread(text)
    thread.call("assistant.threads.setStatus", status=text)
    thread.call(
        "chat.startStream",
        made="1768210861.000002",
        task_display_mode="plan",
        chunks=[
            {"type": "plan_update", "title": text},
            {"type": "task_update", "id": "1", "title": text, "status": "error", "details": text, "output": text},
            {"type": "markdown_text", "text": text},
        ],
    )
    thread.call(
        "chat.postMessage",
        made="1768210862.000003",
        text=text,
        blocks=[
            {"type": "header", "text": plain},
            {"type": "section", "text": {"type": "mrkdwn", "text": text}, "fields": [plain]},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": text}, plain]},
            {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [plain]}]},
            {"type": "input", "label": plain, "hint": plain, "element": {"type": "x", "initial_value": text}},
            {
                "type": "actions",
                "elements": [{"type": "button", "text": plain}, {"type": "x_select", "placeholder": plain}],
            },
            {"type": text},
        ],
    )
    thread.call("files.getUploadURLExternal", made="F1", filename=text)
    thread.workspace.upload("F1", text.encode())
    thread.call("files.completeUploadExternal", made="1768210863.000004", files=[{"id": "F1", "title": text}])
    return thread


def items_of(soup: BeautifulSoup) -> list[BeautifulSoup]:
    data = soup.find("script", type="application/json")
    assert isinstance(data, Tag)
    return [BeautifulSoup(item, "html.parser") for item in json.loads(data.get_text())["items"]]


def assert_harmless(soup: BeautifulSoup, **ours: int) -> None:
    for name in HARMFUL:
        assert soup.find(name) is None
    for name in OURS:
        assert len(soup.find_all(name)) == ours.get(name, 0), name
    for element in soup.find_all(True):
        assert not any(name.startswith("on") or name in {"src", "style", "srcset"} for name in element.attrs), element
        if "href" in element.attrs:
            assert re.match(r"(https?://|mailto:)", str(element["href"]), re.IGNORECASE), element
            assert "noopener" in element["rel"]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_models_write_is_text(text: str) -> None:
    soup = everything(text).page()
    assert_harmless(soup, **OURS)
    for item in items_of(soup):
        assert_harmless(item)
    cards = soup.select(".card small")
    assert cards
    assert all(text in card.get_text() for card in cards)


@given(st.text())
def test_no_text_breaks_out_of_its_element(text: str) -> None:
    for shown in (tag("p", text, title=text), Html(f"<div>{markdown(text, {})}</div>")):
        soup = BeautifulSoup(shown, "html.parser")
        assert len(soup.contents) == 1
        assert_harmless(soup)


def test_the_page_loads_nothing_and_runs_only_its_own_script() -> None:
    soup = everything("text").page()
    policy = soup.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    assert isinstance(policy, Tag)
    rules = dict(rule.split(" ", 1) for rule in str(policy["content"]).split("; "))
    assert rules["default-src"] == "'none'"
    script, style = soup.find_all("script")[-1], soup.find("style")
    assert isinstance(style, Tag)
    for rule, element in (("script-src", script), ("style-src", style)):
        fingerprint = b64encode(sha256(element.get_text().encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{fingerprint}'"
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", style.get_text() + script.get_text())


def test_where_scripts_do_not_run_the_end_is_shown() -> None:
    thread = Thread("which *pods*, <@UBOT>?")
    thread.call(
        "chat.postMessage", made="1768210862.000003", text="x", blocks=[{"type": "markdown", "text": "All **up**."}]
    )
    soup = thread.page()
    shown = soup.select("#thread > li")
    assert [element.get_text(" ", strip=True) for element in shown] == [
        "R Robin 09:41 which pods , @Platform Engineer ?",
        "P Platform Engineer app 09:41 All up .",
    ]
    slider = soup.find(id="time")
    assert isinstance(slider, Tag)
    assert "hidden" in slider.attrs


def test_every_moment_can_be_gone_back_to() -> None:
    thread = Thread()
    thread.call("assistant.threads.setStatus", status="is working")
    thread.call("chat.startStream", made="1768210862.000003", chunks=[{"type": "markdown_text", "text": "One"}])
    thread.call("chat.appendStream", ts="1768210862.000003", chunks=[{"type": "markdown_text", "text": " two"}])
    thread.call("chat.stopStream", ts="1768210862.000003")
    soup = thread.page()
    data = soup.find("script", type="application/json")
    assert isinstance(data, Tag)
    timeline = json.loads(data.get_text())
    texts = [item.get_text(" ", strip=True) for item in items_of(soup)]
    moments = timeline["moments"]
    seen = [(at, [texts[number].split("09:41")[-1].strip() for number in numbers]) for at, numbers in moments]
    assert seen == [
        (0.0, ["what is wrong?"]),
        (1.0, ["what is wrong?", "Platform Engineer is working"]),
        (2.0, ["what is wrong?", "One"]),
        (3.0, ["what is wrong?", "One two"]),
        (4.0, ["what is wrong?", "One two"]),
    ]


@pytest.mark.long
def test_a_long_run_does_not_make_a_page_that_no_browser_opens() -> None:
    thread = Thread()
    thread.call("chat.startStream", made="1768210862.000003", chunks=[{"type": "markdown_text", "text": "Begin"}])
    for _ in range(2 * MAX_MOMENTS):
        thread.call(
            "chat.appendStream", ts="1768210862.000003", chunks=[{"type": "markdown_text", "text": " word" * 20}]
        )
    whole = page("A thread", thread.moments, NAMES, "UBOT")
    assert len(whole) < 1.2 * MAX_CHARACTERS
    soup = BeautifulSoup(whole, "html.parser")
    assert len(thread.moments[-1].transcript.messages[-1].text) > 50_000
    assert thread.moments[-1].transcript.messages[-1].text in soup.select("#thread")[0].get_text()


def test_thinning_keeps_the_first_and_the_last() -> None:
    moments = Thread().moments * 1000
    numbered = [Moment(float(number), moment.transcript) for number, moment in enumerate(moments)]
    kept = [moment.at for moment in thinned(numbered, 10)]
    assert len(kept) == 10
    assert kept == sorted(kept)
    assert (kept[0], kept[-1]) == (0.0, 999.0)
    assert thinned(numbered[:3], 10) == numbered[:3]


def test_the_state_of_a_step_is_told_in_words_too() -> None:
    thread = Thread()
    chunks = [
        {"type": "task_update", "id": status, "title": "Look", "status": status}
        for status in ("pending", "in_progress", "complete", "error")
    ]
    thread.call("chat.startStream", made="1768210862.000003", task_display_mode="plan", chunks=chunks)
    cards = thread.page().select("#thread .card")
    assert [card.get_text() for card in cards] == ["not begun: Look", "in progress: Look", "done: Look", "failed: Look"]


def test_slacks_notation() -> None:
    text = "*b* _i_ ~s~ `<c>` <@U1> <#C1|ops> <!here> <https://a.example|here> 2*3*4 a_b_c &lt;&amp;"
    assert spans_of(text, {"U1": "Robin"}) == (
        Span("b", bold=True),
        Span(" "),
        Span("i", italic=True),
        Span(" "),
        Span("s", struck=True),
        Span(" "),
        Span("<c>", code=True),
        Span(" "),
        Span("@Robin", bold=True),
        Span(" "),
        Span("#ops", bold=True),
        Span(" "),
        Span("@here", bold=True),
        Span(" "),
        Span("here", link="https://a.example"),
        Span(" 2*3*4 a_b_c <&"),
    )
