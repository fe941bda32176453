"""Hostile text at every edge where people read it: log lines, tables, the terminal, ids."""

from __future__ import annotations

import io
import json
import logging
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.cli.doctor_report import AgentReport, Report, show
from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.cli.printing import print_lines
from ai_platform_engineering.integrations.slack_bot.listeners.errors import error_sentence
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.a2a_common.codec.labels import one_line as label
from ai_platform_engineering.utils.a2a_common.request_context import bounded_user, safe_trace_id
from ai_platform_engineering.utils.characters import clean, escaped
from ai_platform_engineering.utils.logs import JsonFormatter, RedactingFormatter
from ai_platform_engineering.utils.redact import Redactor

HOSTILE = {
    "forged line": "x\n12:00:00 ERROR   fake: all is lost",
    "carriage return": "x\r12:00:00 ERROR   fake",
    "separators": "x\u2028y\u2029z\x85w\x0bv\x0cu",
    "clear screen": "x\x1b[2J\x1b[H",
    "eight-bit sequence": "x\x9b2J",
    "hyperlink": "\x1b]8;;https://evil.test\x07bank.test\x1b]8;;\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "reordered": "invoice\u202egpj.exe",
    "isolated": "a\u2066b\u2069c\u200fd\u061c",
    "zero width": "al\u200bice\ufeff",
    "tags": "hello\U000e0069\U000e0067",
    "surrogate": "half \ud83d",
}
_UNSAFE = {"\u2028", "\u2029", "\u200b", "\ufeff", "\u200e", "\u200f", "\u061c", "\ufff9", "\ufffa", "\ufffb"}


def attacks(line: str) -> list[str]:
    """The characters of a line that act on the reader's terminal or hide something."""
    return [
        character
        for character in line
        if unicodedata.category(character) in {"Cc", "Cs"}
        or character in _UNSAFE
        or "\u202a" <= character <= "\u202e"
        or "\u2066" <= character <= "\u2069"
        or "\U000e0000" <= character <= "\U000e007f"
    ]


def record(value: str, *, fails: bool = False) -> logging.LogRecord:
    error = ValueError(value)
    info = (ValueError, error, None) if fails else None
    return logging.LogRecord("jira", logging.INFO, __file__, 1, "%s: asked", (value,), info)


def report(value: str) -> str:
    agent = AgentReport(value, True, "in-process", value, problem=value, warnings=(value,))
    file = io.StringIO()
    show(Report("1", value, False, False, value, "", (value,), (agent,)), file)
    return file.getvalue()


LINES: dict[str, Callable[[str], str]] = {
    "escaped": escaped,
    "log": lambda value: RedactingFormatter(Redactor()).format(record(value)),
    "JSON log": lambda value: JsonFormatter(Redactor()).format(record(value, fails=True)),
    "table": lambda value: "".join(aligned([(value, "2")])),
    "one line": one_line,
    "label of an event": lambda value: label(value, 200),
    "user": bounded_user,
    "trace id": safe_trace_id,
}


@pytest.mark.parametrize("edge", LINES)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_line_stays_one_harmless_line(edge: str, kind: str) -> None:
    assert attacks(LINES[edge](HOSTILE[kind])) == []


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters() | st.sampled_from("".join(HOSTILE.values()))))
def test_no_value_reaches_a_log_or_a_table_as_a_control(value: str) -> None:
    for edge in ("log", "JSON log", "table"):
        assert attacks(LINES[edge](value)) == []
    assert len(report(f"x{value}").splitlines()) == len(report("x").splitlines())
    assert json.loads(LINES["JSON log"](value))["message"] == Redactor()(f"{value}: asked")


def test_the_text_of_an_exception_cannot_look_like_another_record() -> None:
    for value in HOSTILE.values():
        first, *rest = RedactingFormatter(Redactor()).format(record(value, fails=True)).split("\n")
        assert first.endswith(" INFO    jira: " + escaped(f"{value}: asked"))
        assert rest
        assert all(line.startswith("    ") and not attacks(line) for line in rest)


def test_frames_without_the_text_of_the_exception_are_indented(caplog: pytest.LogCaptureFixture) -> None:
    private = "a person's message"
    try:
        raise ValueError(private)
    except ValueError as error:
        error_sentence(error)
    (logged,) = caplog.records
    first, *rest = RedactingFormatter(Redactor()).format(logged).split("\n")
    assert "A request from Slack failed" in first
    assert rest
    assert all(line.startswith("    ") for line in rest)
    assert private not in "".join([first, *rest])
    assert "test_characters.py" in json.loads(JsonFormatter(Redactor()).format(logged))["exception"]


def test_lines_of_text_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_lines("one\n\ttwo\x1b[2J", "three")
    assert capsys.readouterr().out == "one\n\ttwo[2J\nthree\n"


def test_letters_emoji_and_joiners_stay() -> None:
    text = "Jörg 👩\u200d🚀 می\u200cخواهم ☎\ufe0f"
    assert clean(text) == escaped(text) == bounded_user(text) == text


def test_users_stay_different() -> None:
    users = ["alice", "alice\u200b", "alice\n", "alice ", "alice\u202e"]
    assert len({*map(bounded_user, users)}) == len(users)
    assert (bounded_user("alice"), bounded_user("alice ")) == ("alice", "alice ")


def test_a_trace_id_is_kept_or_replaced_always_by_the_same() -> None:
    for usual in ("4bf92f3577b34da6a3ce929d0e0e4736", "00-4bf9-01", "run/7:a@b=c+d.e_f"):
        assert safe_trace_id(usual) == usual
    hostile = HOSTILE["forged line"]
    assert safe_trace_id(hostile) == safe_trace_id(hostile) != safe_trace_id(hostile + "x")
    assert len(safe_trace_id("t" * 201)) == 32


def test_errors_of_commands_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    assert fail("no task '\x1b]0;x\x07'") == 1
    assert capsys.readouterr().err == "platform-engineer: no task ']0;x'\n"
