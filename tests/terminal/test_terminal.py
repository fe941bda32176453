"""The chat as a person uses it, in a real terminal."""

from __future__ import annotations

import re
import time

import pytest

from tests.servers import CommandLine
from tests.terminal.tmux import Terminal

VERSION = "v3.1.8+becb020"


def test_a_conversation_with_a_supervisor_in_the_same_process(terminal: Terminal) -> None:
    terminal.run("chat", OFFLINE_MODEL_DELAY="0.01")
    terminal.wait_for("/help lists the commands")
    terminal.wait_for("›")
    terminal.type("show argocd version")
    shown = terminal.wait_for("›", count=2)
    shown_part = shown[shown.index("show argocd version") :]
    places = [
        shown_part.index(part)
        for part in (
            "I'll ask Argocd",
            "✓ Agent Argocd",
            "    ✓ version_service__version",
            "Plan: Show argocd version",
            "  ✓ Argocd: Show argocd version",
            " • Version: ",
        )
    ]
    assert places == sorted(places)
    assert shown_part.count(VERSION) == 1
    assert shown_part.count("✓ Agent Argocd") == 1
    assert "Calling Agent" not in shown_part, "what moved is gone"

    terminal.type("list my Jira tickets")
    shown = terminal.wait_for("›", count=3)
    assert "✓ Agent Jira" in shown
    assert shown.count(VERSION) == 1

    terminal.press("Up")
    terminal.press("Up")
    terminal.wait_for("› show argocd version", count=2)
    terminal.press("C-u")
    terminal.press("C-d")
    terminal.wait_for("[exit 0]")


def test_what_is_under_way_is_seen_while_it_is(terminal: Terminal, slow_supervisor: CommandLine) -> None:
    terminal.run("chat", "--url", slow_supervisor.url)
    terminal.wait_for("›")
    terminal.type("show argocd version")
    terminal.wait_until(
        lambda shown: re.search(r"I'll ask( Argocd)?$", shown) is not None, "a part of the first sentence"
    )
    shown = terminal.wait_for("Calling Agent Argocd...")
    assert re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Calling Agent Argocd", shown)
    shown = terminal.wait_for("✓ version_service__version")
    assert re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Argocd: Show argocd version", shown), "the step is seen to run"

    terminal.press("C-c")
    shown = terminal.wait_for("›", count=2)
    assert "✗ Agent Argocd: canceled" in shown
    assert "✗ Canceled." in shown
    assert "○ Argocd: Show argocd version" in shown, "a step that was not done does not look done"

    terminal.type("/agents")
    shown = terminal.wait_for("›", count=3)
    assert "pagerduty" in shown
    terminal.press("C-c")
    terminal.wait_for("[exit 0]")


def test_a_question_on_the_command_line_that_is_interrupted(terminal: Terminal, slow_supervisor: CommandLine) -> None:
    terminal.run("chat", "--url", slow_supervisor.url, "show argocd version")
    terminal.wait_for("Calling Agent Argocd...")
    terminal.press("C-c")
    shown = terminal.wait_for("[exit 130]")
    assert "✗ Canceled." in shown


def test_a_narrow_terminal(terminal: Terminal, supervisor: CommandLine) -> None:
    terminal.run("chat", "--url", supervisor.url, "compare Jira and GitHub issues", width=40, height=20)
    shown = terminal.wait_for("[exit 0]")
    lines = shown.splitlines()
    assert max(map(len, lines)) <= 40
    for once in ("✓ Agent Jira", "✓ Agent Github", "Plan: Compare Jira and GitHub issues"):
        assert shown.count(once) == 1, once
    keys = re.findall(r"Key: (\S+)", shown)
    assert len(keys) > 10, shown
    assert len(set(keys)) == len(keys), "nothing is printed twice, also when it is longer than the screen"


@pytest.mark.parametrize("sizes", [[(40, 20), (100, 30)], [(60, 14), (45, 12), (50, 30)]])
def test_the_size_of_the_terminal_may_change(
    terminal: Terminal, slow_supervisor: CommandLine, sizes: list[tuple[int, int]]
) -> None:
    terminal.run("chat", "--url", slow_supervisor.url, "compare Jira and GitHub issues", width=80, height=24)
    terminal.wait_for("✓ search_issues")
    terminal.wait_for("✓ list_issues")
    for width, height in sizes:
        terminal.resize(width, height)
        time.sleep(0.4)
    # A screen of 12 lines has room for one agent; that of the last size has room for both, once it is drawn.
    shown = terminal.wait_for("Calling Agent Jira...")
    assert shown.count("Calling Agent Jira...") == 1
    assert shown.count("Plan: Compare Jira") == 1
    terminal.press("C-c")
    shown = terminal.wait_for("[exit 130]")
    assert shown.count("✗ Agent Jira") == 1
    assert "Calling Agent" not in shown


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_unless_none_is_wanted(
    terminal: Terminal, supervisor: CommandLine, environ: dict[str, str], coloured: bool
) -> None:
    terminal.run("chat", "--url", supervisor.url, "show argocd version", **environ)
    terminal.wait_for("[exit 0]")
    assert VERSION in terminal.everything()
    assert ("\x1b[32m✓" in terminal.everything(styled=True)) is coloured
    assert bool(re.search(r"\x1b\[[0-9;]*3[1-7]m", terminal.everything(styled=True))) is coloured
