from __future__ import annotations

import subprocess

import pytest

from tests.servers import ROOT
from tests.ui.browser import chromium

PAGE = ROOT / "ai_platform_engineering" / "ui" / "web" / "page"


@pytest.mark.long
def test_the_unit_tests_of_the_page_pass() -> None:
    # Where the page was built, its packages are installed.
    chromium()
    done = subprocess.run([PAGE, "test"], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
