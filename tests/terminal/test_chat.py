"""The chat in pipes and scripts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from a2a.types.a2a_pb2 import ListTasksRequest

from ai_platform_engineering.cli import build_parser
from ai_platform_engineering.events import Canceled, FinalResult
from ai_platform_engineering.events_json import Asked, decode_line
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.terminal.conversation import RECONNECTING
from ai_platform_engineering.utils.characters import clean
from tests.invariants import check
from tests.servers import ROOT, CommandLine, calling, serving
from tests.terminal.proxy import tunnel_to

pytestmark = pytest.mark.asyncio(loop_scope="package")

QUESTION = "show argocd version"


@dataclass
class CompletedChat:
    code: int
    stdout: str
    stderr: str


async def begin(directory: Path, arguments: Sequence[str], **environ: str) -> asyncio.subprocess.Process:
    base = {"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8", "DATA_DIR": str(directory / "data")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ai_platform_engineering.cli",
        *arguments,
        env={**base, "PYTHONPATH": str(ROOT), **environ},
        cwd=directory,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def finish(process: asyncio.subprocess.Process, typed: str = "") -> CompletedChat:
    stdout, stderr = await asyncio.wait_for(process.communicate(typed.encode()), 180)
    assert process.returncode is not None
    return CompletedChat(process.returncode, stdout.decode(), stderr.decode())


async def run(directory: Path, *arguments: str, typed: str = "", **environ: str) -> CompletedChat:
    return await finish(await begin(directory, arguments, **environ), typed)


async def expected_answer(supervisor: CommandLine, question: str = QUESTION) -> str:
    async with calling(supervisor.url) as caller:
        final = (await caller.ask(question))[-1]
    assert isinstance(final, FinalResult)
    return final.text


async def test_a_pipe_gets_the_answer_and_nothing_else(tmp_path: Path, supervisor: CommandLine) -> None:
    ended = await run(tmp_path, "chat", "--url", supervisor.url, QUESTION)
    assert (ended.code, ended.stdout) == (0, await expected_answer(supervisor) + "\n")
    assert ended.stderr.splitlines() == [
        "I'll ask Argocd to show argocd version.",
        "Plan: Show argocd version",
        "  [ ] Argocd: Show argocd version",
        "Calling Agent Argocd...",
        "  Argocd: version_service__version: ok",
        "Agent Argocd: ok",
        "  [x] Argocd: Show argocd version",
    ]
    assert clean(ended.stdout + ended.stderr) == ended.stdout + ended.stderr


async def test_without_an_address_the_supervisor_runs_in_the_process(tmp_path: Path, supervisor: CommandLine) -> None:
    ended = await run(tmp_path, "chat", QUESTION, OFFLINE_MODEL_DELAY="0")
    assert (ended.code, ended.stdout) == (0, await expected_answer(supervisor) + "\n")
    assert "Agent Argocd: ok" in ended.stderr


async def test_json_is_a_whole_run_and_can_be_replayed(tmp_path: Path, supervisor: CommandLine) -> None:
    ended = await run(tmp_path, "chat", "--url", supervisor.url, "--context", "a-conversation", "--json", QUESTION)
    assert (ended.code, ended.stderr) == (0, "")
    first, *lines = [decode_line(line) for line in ended.stdout.splitlines()]
    assert first.item == Asked(QUESTION, "a-conversation")
    events = [line.item for line in lines if not isinstance(line.item, Asked)]
    check(events)
    assert isinstance(events[-1], FinalResult)
    times = [line.at for line in lines if line.at is not None]
    assert len(times) == len(lines)
    assert times == sorted(times)

    replayed = await run(tmp_path, "replay", "-", "--speed", "100", typed=ended.stdout)
    assert (replayed.code, replayed.stdout) == (0, events[-1].text + "\n")
    assert "Agent Argocd: ok" in replayed.stderr


async def test_questions_are_read_from_a_pipe_and_remembered(tmp_path: Path, supervisor: CommandLine) -> None:
    typed = "list my Jira tickets\n/new\n\nshow argocd version\n"
    ended = await run(tmp_path, "chat", "--url", supervisor.url, typed=typed)
    assert ended.code == 0
    assert ended.stdout.endswith(await expected_answer(supervisor) + "\n")
    assert [line for line in ended.stderr.splitlines() if line.startswith("Calling")] == [
        "Calling Agent Jira...",
        "Calling Agent Argocd...",
    ]


async def test_a_skill_is_used_by_its_name_on_the_command_line_and_in_a_conversation(
    tmp_path: Path, supervisor: CommandLine
) -> None:
    once = await run(tmp_path, "chat", "--url", supervisor.url, "/incident-triage payments-api")
    assert once.code == 0
    assert "payments-api" in once.stdout
    assert once.stderr.splitlines().count("  Supervisor: read_skill incident-triage: ok") == 1
    typed = "/INCIDENT-triage payments-api\n/no-such-skill\n"
    conversation = await run(tmp_path, "chat", "--url", supervisor.url, typed=typed)
    assert conversation.stderr.count("read_skill incident-triage: ok") == 1
    assert "no-such-skill" in conversation.stdout, "the supervisor answers for names that it does not know"


async def test_skills_are_listed_and_a_mistyped_command_is_no_skill_unless_one_has_that_name(
    tmp_path: Path, supervisor: CommandLine
) -> None:
    listed = await run(
        tmp_path, "chat", "--url", supervisor.url, typed="/skills\n/skills outage\n/skills xyzzy\n/hepl\n"
    )
    assert (listed.code, listed.stdout) == (0, "")
    assert listed.stderr.count("/incident-triage") == 2
    assert "No skill matches 'xyzzy'." in listed.stderr
    assert "/help" in listed.stderr, "the commands are listed"

    skill = tmp_path / "hepl"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: hepl\ndescription: Say hello.\n---\nSay hello to the person.\n")
    await run(tmp_path, "skills", "add", "--url", supervisor.url, str(skill))
    used = await run(tmp_path, "chat", "--url", supervisor.url, typed="/hepl\n")
    await run(tmp_path, "skills", "remove", "--url", supervisor.url, "hepl")
    assert "Supervisor: read_skill hepl: ok" in used.stderr


async def test_a_run_that_fails_says_so_and_exits_with_one(tmp_path: Path) -> None:
    environ = {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k", "OPENAI_MODEL_NAME": "gpt", "LLM_MAX_RETRIES": "0"}
    ended = await run(tmp_path, "chat", QUESTION, OPENAI_ENDPOINT="http://127.0.0.1:9/v1", **environ)
    assert (ended.code, ended.stdout) == (1, "")
    assert "Failed: " in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_an_interrupted_question_is_canceled_and_exits_with_130(
    tmp_path: Path, slow_supervisor: CommandLine
) -> None:
    process = await begin(tmp_path, ["chat", "--url", slow_supervisor.url, "--json", QUESTION])
    assert process.stdout is not None
    head = b""
    while b"agent_started" not in head:
        head += await asyncio.wait_for(process.stdout.readline(), 90)
    process.send_signal(signal.SIGINT)
    ended = await finish(process)
    assert ended.code == 130
    last = decode_line(ended.stdout.splitlines()[-1]).item
    assert isinstance(last, Canceled)
    assert "Argocd" in last.message


async def test_a_supervisor_that_is_not_there(tmp_path: Path) -> None:
    ended = await run(tmp_path, "chat", "--url", "http://127.0.0.1:9", QUESTION)
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr.startswith(
        "platform-engineer: There is no supervisor at http://127.0.0.1:9 (connection refused)"
    )
    assert len(ended.stderr.splitlines()) == 1


async def test_wrong_settings_exit_with_two(tmp_path: Path) -> None:
    ended = await run(tmp_path, "chat", QUESTION, OFFLINE_MODEL_DELAY="soon")
    assert (ended.code, ended.stdout) == (2, "")
    assert "OFFLINE_MODEL_DELAY" in ended.stderr
    assert (await run(tmp_path, "chat", " ")).code == 2


async def test_the_key_is_sent(tmp_path: Path, supervisor: CommandLine) -> None:
    async with tunnel_to(supervisor.url) as tunnel:
        ended = await run(tmp_path, "chat", "--url", tunnel.url, QUESTION, A2A_AUTH_SHARED_KEY="open-sesame-please")
    assert ended.code == 0
    asked = [request for request in tunnel.requests if request.startswith(b"POST")]
    assert all(b"authorization: bearer open-sesame-please\r\n" in request.lower() for request in asked)
    assert asked


async def test_a_wrong_key_is_a_wrong_setting(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "A2A_AUTH_SHARED_KEY": "open-sesame-please"}
    async with serving(create_app, environ) as url:
        for question in ([QUESTION], []):
            ended = await run(tmp_path, "chat", "--url", url, *question, typed=f"{QUESTION}\n")
            assert (ended.code, ended.stdout) == (2, "")
            assert "requires a key; set A2A_AUTH_SHARED_KEY" in ended.stderr
            assert len(ended.stderr.splitlines()) == 1


async def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path, supervisor: CommandLine) -> None:
    process = await begin(tmp_path, ["chat", "--url", supervisor.url, "--json", QUESTION])
    assert process.stdout is not None
    assert process.stderr is not None
    await process.stdout.readline()
    process.stdout._transport.close()  # type: ignore[attr-defined]
    error = await asyncio.wait_for(process.stderr.read(), 60)
    await process.wait()
    assert b"Traceback" not in error
    assert b"BrokenPipe" not in error


@pytest.mark.parametrize("size", [2_000, 9_000])
async def test_a_lost_connection_is_picked_up_without_a_gap_or_a_repeat(
    tmp_path: Path, supervisor: CommandLine, size: int
) -> None:
    """The stream is cut for the first time after `size` bytes, and twice more after what follows."""
    async with tunnel_to(supervisor.url) as tunnel:
        tunnel.cut = lambda sent: b"text/event-stream" in sent and len(sent) > size and tunnel.cuts < 3
        ended = await run(tmp_path, "chat", "--url", tunnel.url, "--json", QUESTION)
        plain = await run(tmp_path, "chat", "--url", supervisor.url, "--json", QUESTION)
    assert tunnel.cuts >= 1
    assert ended.stderr.splitlines() == [RECONNECTING] * tunnel.cuts
    assert ended.code == 0
    cut, whole = merged(ended.stdout), merged(plain.stdout)
    assert cut == whole
    resumed = [request for request in tunnel.requests if b"last-event-id" in request.lower()]
    assert len(resumed) >= tunnel.cuts


async def test_a_supervisor_that_is_away_for_a_while_is_waited_for(tmp_path: Path, supervisor: CommandLine) -> None:
    async with tunnel_to(supervisor.url) as tunnel:
        tunnel.cut = lambda sent: b"text/event-stream" in sent and len(sent) > 4_000 and tunnel.cuts < 1
        process = await begin(tmp_path, ["chat", "--url", tunnel.url, QUESTION])
        await asyncio.wait_for(tunnel.was_cut.wait(), 90)
        tunnel.refuse = True
        await asyncio.sleep(1)
        tunnel.refuse = False
        ended = await finish(process)
    assert (ended.code, ended.stdout) == (0, await expected_answer(supervisor) + "\n")
    assert ended.stderr.splitlines().count(RECONNECTING) == 1


async def test_a_lost_first_reply_does_not_ask_twice(tmp_path: Path, supervisor: CommandLine) -> None:
    async with tunnel_to(supervisor.url) as tunnel:
        tunnel.cut = lambda sent: b"text/event-stream" in sent and tunnel.cuts < 1
        ended = await run(tmp_path, "chat", "--url", tunnel.url, "--context", "lost-reply", QUESTION)
    assert (ended.code, tunnel.cuts) == (0, 1)
    assert ended.stdout == await expected_answer(supervisor) + "\n"
    async with calling(supervisor.url) as caller:
        listed = await caller.client.list_tasks(ListTasksRequest(context_id="lost-reply"))
    assert len(listed.tasks) == 1


def merged(output: str) -> list[object]:
    """The events with ids and times taken out and pieces of text joined."""
    names: dict[str, str] = {}
    events: list[dict[str, object]] = []
    for line in output.splitlines():
        event = json.loads(line)
        for key in ("at", "context_id"):
            event.pop(key, None)
        for key in ("message_id", "answer_message_id", "call_id", "parent_call_id"):
            if key in event:
                event[key] = names.setdefault(event[key], f"id-{len(names)}")
        last = events[-1] if events else {}
        if event["event"] == last.get("event") == "text_delta" and event["message_id"] == last["message_id"]:
            last["text"] = f"{last['text']}{event['text']}"
        else:
            events.append(event)
    return list(events)


@pytest.mark.parametrize(
    "argv",
    [["chat", "--url", "supervisor"], ["chat", "--url", "ftp://x"], ["chat", "a", "b"], ["replay"]]
    + [["replay", "f", "--speed", speed] for speed in ("0", "-1", "fast", "nan", "inf")]
    + [["replay", "f", "--speed", "2", "--instant"]],
    ids=" ".join,
)
async def test_wrong_arguments(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(argv)
    assert caught.value.code == 2
    assert capsys.readouterr().err
