"""A real terminal for tests: tmux, with what is on its screen and what has scrolled away."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def terminal_problem() -> str | None:
    """Why there is no terminal to test in; where services are required, the test goes on and fails."""
    if shutil.which("tmux") or os.environ.get("REQUIRE_SERVICES") == "1":
        return None
    return "tmux is not installed (apt-get install tmux)"


class Terminal:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = 0
        self._socket = ""

    def run(self, *arguments: str, width: int = 80, height: int = 24, **environ: str) -> None:
        """Start `platform-engineer` with `arguments`; its exit code is written below what it leaves on the screen."""
        # A socket of its own for each: the server of the one that was closed may still be ending.
        self._runs += 1
        self._socket = str(self._directory / f"tmux-{self._runs}")
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._directory),
            "LANG": "C.UTF-8",
            "DATA_DIR": str(self._directory / "data"),
            # Some shells export these, and they are wrong as soon as the terminal changes.
            "COLUMNS": "80",
            "LINES": "24",
            "PYTHONPATH": str(ROOT),
            **environ,
        }
        command = shlex.join([sys.executable, "-m", "ai_platform_engineering.cli", *arguments])
        script = self._directory / "run.sh"
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
        script.write_text(
            f'trap : INT\n{exports}cd {shlex.quote(str(self._directory))}\n{command}\necho "[exit $?]"\nexec cat\n'
        )
        configuration = self._directory / "tmux.conf"
        configuration.write_text("set -g status off\nset -g history-limit 5000\nset -sg escape-time 0\n")
        size = ["-x", str(width), "-y", str(height)]
        self._tmux("-f", str(configuration), "new-session", "-d", *size, f"sh {shlex.quote(str(script))}")

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def everything(self, *, styled: bool = False) -> str:
        """All that was written, as it looks now, with what has scrolled away; `styled` with the codes for colours."""
        return self._tmux("capture-pane", "-p", *(["-e"] if styled else []), "-S", "-5000").rstrip("\n")

    def wait_for(self, text: str, *, count: int = 1, seconds: float = 100) -> str:
        return self.wait_until(lambda shown: shown.count(text) >= count, f"{text!r} x{count}", seconds)

    def wait_until(self, condition: Callable[[str], bool], what: str, seconds: float = 100) -> str:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition(shown := self.everything()):
                return shown
            time.sleep(0.05)
        raise AssertionError(f"{what} did not come; there was:\n{self.everything()}")

    def close(self) -> None:
        if self._socket:
            subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)

    def _tmux(self, *arguments: str) -> str:
        completed = subprocess.run(
            ["tmux", "-S", self._socket, *arguments], capture_output=True, text=True, check=False, timeout=60
        )
        assert completed.returncode == 0, completed.stderr
        return completed.stdout
