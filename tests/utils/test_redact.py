from __future__ import annotations

import io
import json
import logging
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import ToolFinished
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.logs import JsonFormatter, RedactingFormatter, configure_logging
from ai_platform_engineering.utils.redact import MASK, KnownSecrets, Redactor, looks_secret, redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GET http://bob:hunter2@argocd.test/api failed", "GET http://***@argocd.test/api failed"),
        ("postgresql+asyncpg://bob:p@ss@db.test:5432/x", "postgresql+asyncpg://***@db.test:5432/x"),
        ("https://ghp-user@github.test/x", "https://***@github.test/x"),
        ("Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer ***"),
        ("headers={'authorization': 'Basic Ym9iOmh1bnRlcjI='}", "headers={'authorization': 'Basic ***'}"),
        ("login password=hunter2, retrying", "login password=***, retrying"),
        ('{"api_key": "abcd1234", "n": 1}', '{"api_key": "***", "n": 1}'),
        (r"{\"client_secret\": \"abcd1234\"}", r"{\"client_secret\": \"***\"}"),
        ("GET /x?access_token=abcd1234&page=2", "GET /x?access_token=***&page=2"),
        ("ARGOCD_API_TOKEN=abcd1234", "ARGOCD_API_TOKEN=***"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl here", "jwt *** here"),
        (
            "Cookie: __Host-platform-engineer-session-1f=a.b; x=1",
            "Cookie: __Host-platform-engineer-session-1f=***; x=1",
        ),
        ("X-CSRF-Token: 0123456789abcdef", "X-CSRF-Token: ***"),
        ("ghp_0123456789abcdefghij and xoxb-1234567890-abc", "*** and ***"),
        ("sk-proj-0123456789abcdef", "***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
    ],
)
def test_credentials_are_taken_out(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "argocd: remote at http://agent-argocd:8000, reachable",
        "used 4096 tokens: 12 left",
        "mail bob@acme.test about the task-list and risk-assessment-of-everything",
        "the token is missing",
        "ARGOCD_API_TOKEN is not set",
        "http://host/path@2x.png",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("variable", "secret"),
    [
        ("ARGOCD_API_TOKEN", True),
        ("OPENAI_API_KEY", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("DB_PASSWORD", True),
        ("GITHUB_PAT", True),
        ("ARGOCD_API_URL", False),
        ("TOKEN_URL", False),
        ("KEYBOARD", False),
        ("MAX_TOKENS", False),
        ("PATH", False),
        ("SSH_KEY_FILE", False),
    ],
)
def test_names_that_look_secret(variable: str, secret: bool) -> None:
    assert looks_secret(variable) is secret


class TestRedactor:
    def test_known_values_are_taken_out_anywhere(self) -> None:
        environ = {"JIRA_TOKEN": "plain-words", "JIRA_URL": "https://jira.test", "DEBUG_KEY": "1"}
        redactor = Redactor.of(load_settings(environ, env_file=None))
        assert redactor("said plain-words to https://jira.test, 1 time") == f"said {MASK} to https://jira.test, 1 time"

    def test_a_value_that_begins_with_another_is_taken_out_whole(self) -> None:
        assert Redactor(["secret-one", "secret-one-and-more"])("x secret-one-and-more y") == f"x {MASK} y"

    def test_what_is_special_in_a_pattern_is_not_special_in_a_value(self) -> None:
        assert Redactor(["a+b(c)*[d]"])("see a+b(c)*[d] there") == f"see {MASK} there"

    def test_without_known_values(self) -> None:
        assert Redactor()("Bearer 0123456789") == f"Bearer {MASK}"


class TestKnownSecrets:
    def test_the_secrets_of_the_settings(self) -> None:
        environ = {
            "OPENAI_API_KEY": "key-of-the-provider",
            "A2A_AUTH_KEYS": "ci:bot:key-of-the-bot-0123456789",
            "EVENT_LOG_POSTGRES_DSN": "postgresql://app:pass%2Fword-1@db.test:5432/platform",
            "HTTPS_PROXY": "http://bob:proxy-pass@proxy.test",
            "GITLAB_PERSONAL_ACCESS_TOKEN": 'quo"ted/token',
            "SHORT_TOKEN": "1234567",
        }
        masked = KnownSecrets.of(load_settings(environ, env_file=None))
        secret = ["key-of-the-provider", "key-of-the-bot-0123456789", "pass/word-1", "pass%2Fword-1", "proxy-pass"]
        for text in (*secret, *environ.values(), json.dumps('quo"ted/token'), "quo%22ted%2Ftoken"):
            shown = masked(f"a {text} b")
            assert not any(value in shown for value in secret), shown
            assert ("quo" in shown, "1234567" in shown) == (False, text == "1234567")
        ordinary = "platform at db.test:5432, Bearer 0123456789, password=hunter2-and-more"
        assert masked(ordinary) == ordinary

    def test_a_password_that_is_also_a_name_stays(self) -> None:
        address = "postgresql://postgres:postgres@db.test/x"
        masked = KnownSecrets.of(load_settings({"EVENT_LOG_POSTGRES_DSN": address}, env_file=None))
        assert masked(f"postgres runs at {address}") == f"postgres runs at {MASK}"

    def test_values_in_structures(self) -> None:
        masked = KnownSecrets(["secret-one"]).masked
        event = ToolFinished("argocd", "sync", "c1", ok=False, reason="no secret-one")
        assert masked(event) == ToolFinished("argocd", "sync", "c1", ok=False, reason=f"no {MASK}")
        assert masked([{"text": "secret-one", "n": 1}, ("secret-one", None)]) == [{"text": MASK, "n": 1}, (MASK, None)]

    @pytest.mark.parametrize("values", [["abcabcabd"], ["abcdefgh", "abcdefghij", "ghabcdefg"]])
    @settings(max_examples=100, deadline=None)
    @given(pieces=st.lists(st.text("abcdghij ", max_size=4) | st.sampled_from(["abcdefgh", "abcabcabd", "efg", "ij"])))
    def test_a_stream_gives_what_the_whole_text_gives(self, values: list[str], pieces: list[str]) -> None:
        secrets, sent, end = KnownSecrets(values), "", ""
        for piece in pieces:
            text, end = secrets.split(end + piece)
            sent += text
        assert sent + secrets(end) == secrets("".join(pieces))


@given(st.text(), st.text(min_size=6).map(str.strip).filter(lambda text: len(text) >= 6), st.text())
def test_no_known_value_is_left(before: str, secret: str, after: str) -> None:
    redacted = Redactor([secret])(f"{before} {secret} {after}")
    assert secret not in redacted or secret in MASK


def test_long_text_is_quick() -> None:
    started = time.process_time()
    for text in ("a" * 200_000, "a." * 100_000, "token" * 40_000, "://" * 60_000, "eyJ" * 60_000, "@" * 200_000):
        redact(text)
    assert time.process_time() - started < 5


class TestLogs:
    def record(self) -> logging.LogRecord:
        try:
            raise ValueError("cannot use plain-words")
        except ValueError as error:
            info = (type(error), error, error.__traceback__)
        return logging.LogRecord("jira", logging.ERROR, __file__, 1, "sent %s", ("plain-words",), info)

    def test_a_line_and_its_traceback_are_redacted(self) -> None:
        line = RedactingFormatter(Redactor(["plain-words"])).format(self.record())
        assert f"ERROR   jira: sent {MASK}" in line
        assert f"ValueError: cannot use {MASK}" in line
        assert "plain-words" not in line

    def test_of_our_own_loggers_the_module_is_named(self) -> None:
        record = logging.LogRecord("ai_platform_engineering.utils.redact", logging.INFO, __file__, 1, "hello", (), None)
        assert RedactingFormatter(Redactor()).format(record).endswith(" INFO    redact: hello")

    def test_a_json_line_is_one_object(self) -> None:
        line = JsonFormatter(Redactor(["plain-words"])).format(self.record())
        assert "\n" not in line
        content = json.loads(line)
        assert (content["level"], content["logger"], content["message"]) == ("error", "jira", f"sent {MASK}")
        assert content["exception"].endswith(f"ValueError: cannot use {MASK}")
        assert content["time"].endswith("Z")

    @pytest.mark.parametrize("log_format", ["text", "json"])
    def test_the_whole_process_logs_as_the_settings_say(self, log_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        root.handlers = []
        try:
            configure_logging(
                load_settings({"LOG_FORMAT": log_format, "LOG_LEVEL": "info", "X_TOKEN": "plain-words"}, env_file=None)
            )
            logging.getLogger("jira").debug("not shown")
            logging.getLogger("httpx").info("not shown")
            logging.getLogger("httpx2").info("not shown")
            logging.getLogger("jira").info("with plain-words")
            logging.getLogger("httpx").warning("trouble")
            configure_logging(load_settings({}, env_file=None), quiet=True)
            logging.getLogger("jira").warning("not shown")
        finally:
            root.handlers, root.level = handlers, level
            for name in ("a2a", "asyncio", "fastmcp", "h11", "hpack", "httpcore", "httpx", "httpx2", "mcp", "uvicorn"):
                logging.getLogger(name).setLevel(logging.NOTSET)
        lines = stream.getvalue().splitlines()
        assert len(lines) == 2
        assert f"with {MASK}" in lines[0]
        assert "trouble" in lines[1]
        assert (lines[0][0] == "{") == (log_format == "json")
