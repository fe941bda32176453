from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.recovery.processes import Restartable
from tests.servers import ROOT, Command
from tests.ui.browser import LOOKS, VIEWPORTS, NewPage, check_both_themes
from tests.ui.chat import ask, open_chat, overflows

QUESTION = "compare Jira and GitHub issues"
RECORDING = ROOT / "tests" / "recordings" / "two-agents.jsonl"


async def open_events(page: Page) -> None:
    await open_chat(page)
    await ask(page, QUESTION)
    await page.get_by_role("button", name="Events of this run").click()
    await expect(page.get_by_role("region", name="Events of this run")).to_be_visible()


async def open_replay(page: Page, recording: Path) -> None:
    await page.goto("#/replay")
    await page.get_by_label("Drop a recording here").set_input_files(recording)


async def test_events_are_filtered_and_opened(page: Page) -> None:
    await open_events(page)
    events = page.get_by_role("region", name="Events of this run")
    rows = events.get_by_role("listitem")
    await events.get_by_label("Kind of event").select_option("agent_started")
    await expect(rows).to_have_count(2)
    await events.get_by_label("Search the events").fill("GITHUB")
    await expect(rows).to_have_count(1)
    await rows.first.locator("summary").click()
    shown = await rows.first.locator("pre").inner_text()
    assert json.loads(shown)["agent"] == "github"


async def test_the_download_is_the_recording_of_the_task(
    page: Page, supervisor: Restartable, platform_engineer: Command, tmp_path: Path
) -> None:
    await open_events(page)
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Download the recording").click()
    download = await downloading.value
    file = tmp_path / download.suggested_filename
    await download.save_as(file)
    replayed = platform_engineer("replay", "--instant", file)
    assert replayed.returncode == 0, replayed.stderr
    assert "Agent Jira: ok" in replayed.stderr
    exported = platform_engineer("tasks", "export", file.stem, DATA_DIR=supervisor.data_dir)
    assert exported.returncode == 0, exported.stderr
    assert comparable(file.read_text(encoding="utf-8")) == comparable(exported.stdout)


def comparable(recording: str) -> list[dict[str, object]]:
    """Events without times, and questions without their conversation."""
    lines = [json.loads(line) for line in recording.splitlines()]
    return [{name: value for name, value in line.items() if name not in ("at", "context_id")} for line in lines]


async def test_a_recording_is_played(page: Page) -> None:
    await open_replay(page, RECORDING)
    await expect(page.get_by_role("main").get_by_text(QUESTION)).to_be_visible()
    await page.get_by_role("button", name="Show everything").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("16 issues")
    await expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    position = page.get_by_label("Position")
    await position.fill("0")
    await expect(page.get_by_role("region", name="Answer")).to_have_count(0)
    await position.fill("1.5")
    await expect(page.get_by_role("region", name="Plan")).to_be_visible()
    await page.get_by_label("Speed").select_option("16")
    await page.get_by_role("button", name="Play", exact=True).click()
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "viewport"), LOOKS)
async def test_events_and_replay_are_accessible_and_fit(new_page: NewPage, theme: str, viewport: str) -> None:
    page = await new_page(theme=theme, viewport=VIEWPORTS[viewport])
    await open_replay(page, RECORDING)
    await page.get_by_role("button", name="Show everything").click()
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()
    await check_both_themes(page)
    assert not await overflows(page)
    await open_events(page)
    await page.get_by_role("region", name="Events of this run").locator("summary").first.click()
    await check_both_themes(page)
    assert not await overflows(page)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"event": "asked", "question": "x"}\n<script>alert(1)</script>', "Line 2: This is not JSON"),
        ('{"event": "text_delta", "agent": 1}', "Line 1: The text_delta event has a wrong “agent”: it must be a text."),
        ("", "The file is empty"),
        ("x" * 20_000_001, "larger than 20 MB"),
    ],
)
async def test_a_file_that_is_no_recording_is_refused(page: Page, tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "recording.jsonl"
    file.write_text(content, encoding="utf-8")
    await open_replay(page, file)
    await expect(page.get_by_role("alert")).to_contain_text(sentence)


async def test_a_hostile_recording_stays_text(page: Page, tmp_path: Path) -> None:
    hostile = '<img src=x onerror="document.title=1"><script>document.title=1</script> [click](javascript:alert(1))'
    lines: list[dict[str, object]] = [
        {"event": "asked", "question": hostile},
        {"event": "agent_started", "agent": hostile, "call_id": "c1"},
        {"event": "tool_started", "agent": hostile, "tool": hostile, "call_id": "c2", "parent_call_id": "c1"},
        {"event": "final_result", "text": hostile, "answer_message_id": "m1"},
    ]
    file = tmp_path / "hostile.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    await open_replay(page, file)
    await page.get_by_role("button", name="Show everything").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("click")
    assert await page.locator("main :is(script, img, a[href^='javascript'])").count() == 0
    await expect(page).to_have_title("Platform Engineer")
