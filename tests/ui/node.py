"""Programs of the page that run in Node.js."""

from __future__ import annotations

import os
import subprocess

from ai_platform_engineering.ui.page import Page as BuiltPage
from tests.servers import ROOT
from tests.services.environment import not_here


def run_page(*arguments: str) -> str:
    """The output of `page ARGUMENT...`. Skips where the page could not be built, because Node.js is missing."""
    if not BuiltPage().is_built:
        not_here("the page was not built (make setup builds it where there is Node.js)")
    program = ROOT / "ai_platform_engineering" / "ui" / "web" / "page"
    environ = {**os.environ, "UV": str(ROOT / ".venv" / "bin" / "uv")}
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0, f"{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
    return done.stdout
