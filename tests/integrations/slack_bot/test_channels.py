from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from ai_platform_engineering.integrations.slack_bot.channels import CHECK_SECONDS, Channel, Channels, load_channels
from ai_platform_engineering.settings import SettingsError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "channels.yaml"


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rules(file: Path, text: str, channel: str = "C1", *, direct: bool = False) -> Channel:
    file.write_text(text)
    return load_channels(file).of(channel, direct=direct)


def problems(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_channels(file)
    said = str(refused.value).splitlines()
    assert all(line.startswith(f"{file}: ") for line in said)
    return [line.removeprefix(f"{file}: ") for line in said]


def test_without_a_file_every_channel_is_answered_on_mention() -> None:
    channels = load_channels(None)
    everywhere = Channel(enabled=True, answer="mentions", prompt="", approvers=(), forms="requester")
    assert channels.of("C1", direct=False) == channels.of("D1", direct=True) == everywhere


WHOLE = """
defaults:
  prompt: Be kind.
  approvers: [U0]
channels:
  C1:
    name: platform-help
    enabled: true
    answer: all
    prompt: |
      Answer in German.
    approvers: [U1, W2]
    forms: anyone
  C2: {name: short}
  C3:
  G4: {enabled: false}
"""


def test_a_channel_has_what_the_file_says(file: Path) -> None:
    assert rules(file, WHOLE) == Channel(True, "all", "Answer in German.", ("U1", "W2"), "anyone")


@pytest.mark.parametrize("channel", ["C2", "C3"])
def test_a_listed_channel_is_opted_in_and_has_the_defaults(file: Path, channel: str) -> None:
    assert rules(file, WHOLE, channel) == Channel(True, "mentions", "Be kind.", ("U0",), "requester")


@pytest.mark.parametrize("channel", ["G4", "C9"])
def test_other_channels_are_silent(file: Path, channel: str) -> None:
    assert rules(file, WHOLE, channel) == Channel(False, "mentions", "Be kind.", ("U0",), "requester")


def test_the_defaults_may_enable_every_channel(file: Path) -> None:
    text = "defaults: {enabled: true, answer: all}\nchannels: {C1: {enabled: false}}"
    assert rules(file, text, "C9") == Channel(True, "all")
    assert not rules(file, text, "C1").enabled


def test_direct_messages_are_answered_under_the_same_approvers(file: Path) -> None:
    assert rules(file, WHOLE, "D1", direct=True) == Channel(True, "mentions", "Be kind.", ("U0",), "requester")
    assert rules(file, "defaults: {answer: all}", "D1", direct=True).answer == "mentions"
    assert not rules(file, "direct: false\ndefaults: {enabled: true}", "D1", direct=True).enabled


def test_keys_whose_lines_are_commented_out(file: Path) -> None:
    assert rules(file, "defaults:\n#  enabled: true\nchannels:\n#  C1:\n").enabled is False


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("channel: {}", "channel: unknown key; allowed are direct, defaults, channels."),
        (
            "channels: {C1: {enable: true}}",
            "channels.C1.enable: unknown key; allowed are enabled, answer, prompt, approvers, forms, name.",
        ),
        ("defaults: {name: x}", "defaults.name: unknown key; allowed are enabled, answer, prompt, approvers, forms."),
        ("channels: {C1: {answer: some}}", "channels.C1.answer: 'some' is not allowed; use 'mentions' or 'all'."),
        ("channels: {C1: {forms: me}}", "channels.C1.forms: 'me' is not allowed; use 'requester' or 'anyone'."),
        ("channels: {C1: {enabled: maybe}}", "channels.C1.enabled: 'maybe' is not allowed; use true or false."),
        ("direct: []", "direct: [] is not allowed; use true or false."),
        (
            "channels: {'#help': {}}",
            "channels.#help: is not a channel's id; Slack shows it at the end of the channel's details, as C0123ABCD.",
        ),
        (
            "channels: {C1: {approvers: [U1, '@ada']}}",
            "channels.C1.approvers.1: '@ada' is not a member's id; Slack has it in the menu of their profile, as "
            "U0123ABCD.",
        ),
        (
            "channels: {C1: {approvers: U1}}",
            "channels.C1.approvers: must be a list, such as [U0123ABCD, U0123EFGH].",
        ),
        ("channels: {C1: {prompt: 7}}", "channels.C1.prompt: must be text; put the value in quotes."),
        (
            f"channels: {{C1: {{prompt: {'x' * 4001}}}}}",
            "channels.C1.prompt: has 4001 characters; 4000 are allowed.",
        ),
        (
            "channels: {C1: enabled}",
            "channels.C1: must hold keys; allowed are enabled, answer, prompt, approvers, forms, name.",
        ),
        ("channels: [C1]", "channels: must hold keys; allowed are ids of channels, such as C0123ABCD."),
        ("- C1", "must hold the keys of one list of channels; allowed are direct, defaults, channels."),
        ("channels: {1: {}}", "channels.1: must be text; put the value in quotes."),
    ],
)
def test_a_problem_is_told_with_the_channel_the_key_and_what_is_allowed(file: Path, text: str, said: str) -> None:
    assert problems(file, text) == [said]


def test_all_problems_are_told_at_once(file: Path) -> None:
    assert len(problems(file, "direct: 7.5\nchannels: {C1: {answer: x}, c2: {forms: y}}")) == 4


def test_yaml_that_is_none_is_told_with_the_line(file: Path) -> None:
    (said,) = problems(file, "channels:\n  C1: {name: [}")
    assert said.startswith("is not valid YAML at line 2")


def test_a_prompt_of_the_allowed_length(file: Path) -> None:
    assert rules(file, f"channels: {{C1: {{prompt: {'x' * 4000}}}}}").prompt == "x" * 4000


def test_a_change_is_noticed_after_some_seconds(file: Path) -> None:
    file.write_text("channels: {C1: {}}")
    watch = Watch()
    channels = Channels(file, watch)
    file.write_text("channels: {C1: {enabled: false}, C2: {}}")
    watch.now = CHECK_SECONDS - 0.1
    assert channels.of("C1", direct=False).enabled
    watch.now = CHECK_SECONDS
    assert not channels.of("C1", direct=False).enabled
    assert channels.of("C2", direct=False).enabled


def test_a_file_that_is_replaced_by_one_of_the_same_age_and_size_is_noticed(file: Path) -> None:
    file.write_text("channels: {C1: {}}")
    watch = Watch()
    channels = Channels(file, watch)
    other = file.with_name("other.yaml")
    other.write_text("channels: {C2: {}}")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.rename(file)
    watch.now = CHECK_SECONDS
    assert channels.of("C2", direct=False).enabled


@pytest.mark.parametrize(("broken", "reason"), [("channels: {C1: {answer: some}}", "'some'"), (None, "cannot be read")])
def test_a_broken_version_changes_nothing_and_is_told_once(
    file: Path, caplog: pytest.LogCaptureFixture, broken: str | None, reason: str
) -> None:
    file.write_text("channels: {C1: {}}")
    watch = Watch()
    channels = Channels(file, watch)
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            watch.now += CHECK_SECONDS
            assert channels.of("C1", direct=False) == Channel()
    (warning,) = caplog.messages
    assert warning.startswith("The channel rules stay unchanged. ")
    assert str(file) in warning
    assert reason in warning
    file.write_text("channels: {C1: {forms: anyone}}")
    watch.now += CHECK_SECONDS
    assert channels.of("C1", direct=False).forms == "anyone"
