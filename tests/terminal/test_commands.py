"""Which lines are for `chat` itself, and which go to the supervisor."""

from __future__ import annotations

import pytest

from ai_platform_engineering.terminal.commands import is_chat_command, looks_mistyped


@pytest.mark.parametrize("line", ["/help", "/Help", "/skills", "/skills roll back", "/new conversation"])
def test_own_commands_are_known_whatever_follows_them(line: str) -> None:
    assert is_chat_command(line)


@pytest.mark.parametrize("line", ["/hepl", "/qiut", "/skill", "/agent"])
def test_one_word_like_a_command_may_be_mistyped(line: str) -> None:
    assert looks_mistyped(line)
    assert not is_chat_command(line)


@pytest.mark.parametrize(
    "line", ["/incident-triage", "/incident-triage payments-api", "/hepl me", "/etc/hosts", "hepl", ""]
)
def test_other_lines_are_for_the_supervisor(line: str) -> None:
    assert not is_chat_command(line)
    assert not looks_mistyped(line)
