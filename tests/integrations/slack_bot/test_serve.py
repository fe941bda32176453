"""The bot as a process: what it says at start, how Slack reaches it, and how it ends."""

from __future__ import annotations

import asyncio
import re
import signal
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.integrations.slack_bot.store.postgres import BotStoreAddress, PostgresBotStore
from tests.integrations.slack_bot.standin import Slack
from tests.integrations.slack_bot.test_store import in_postgres
from tests.integrations.slack_bot.test_store_postgres import disconnect_all
from tests.servers import Command, CommandLine
from tests.services.postgres import PASSWORD

pytest_plugins = ("tests.services.fixtures",)

UNREACHABLE = "http://127.0.0.1:9"


def bot(slack: Slack, data: Path, *, socket_mode: bool) -> CommandLine:
    environ = slack.environ(socket_mode=socket_mode)
    return CommandLine(
        ["slack", "--port", "0"],
        {**environ, "DATA_DIR": str(data), "SUPERVISOR_URL": UNREACHABLE, "LOG_LEVEL": "debug"},
    )


async def get(address: str) -> tuple[int, str]:
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.get(address)
        return answer.status_code, answer.text


@pytest.mark.parametrize("socket_mode", [True, False])
async def test_it_starts_without_a_supervisor_takes_what_is_said_and_stops_in_order(
    slack: Slack, tmp_path: Path, socket_mode: bool
) -> None:
    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    async with bot(slack, tmp_path, socket_mode=socket_mode) as process:
        mode = "Socket Mode" if socket_mode else "HTTP"
        line = rf"Slack bot is ready at {process.url} \({mode}\), workspace Workspace, supervisor {UNREACHABLE}\n"
        assert re.fullmatch(line, process.output[-1])
        assert await get(f"{process.url}/healthz") == (200, '{"status":"ok"}')
        assert await get(f"{process.url}/readyz") == (200, '{"status":"ready"}')
        assert len(slack.calls("apps.connections.open")) == socket_mode
        if not socket_mode:
            slack.calls_bot_at(f"{process.url}/slack/events")
        await ada.commands(channel, "/platform", "help")
        assert "/platform agents" in ada.reads(channel)
        question = await ada.says(channel, f"{slack.mention} what is the confidential plan?")
        await slack.deliveries.finish()
        await slack.until(lambda: slack.calls("assistant.threads.setStatus"))
        assert await process.stop() == 0
        output = "".join(process.output)
    assert question.ts not in output
    for word in ("confidential", slack.app.bot_token, slack.app.app_token, "WARNING", "ERROR"):
        assert word not in output
    assert [ack.problem for ack in slack.acks] == [""] * 3
    assert slack.violations == []


async def test_in_socket_mode_it_has_no_route_for_slack_and_over_http_only_slack_can_call_it(
    slack: Slack, tmp_path: Path
) -> None:
    body = '{"type": "event_callback"}'
    async with bot(slack, tmp_path, socket_mode=True) as process:
        route = slack.calls_bot_at(f"{process.url}/slack/events")
        assert (await route.post(body, "application/json", secret="anything")).status_code == 404
    async with bot(slack, tmp_path, socket_mode=False) as process:
        route = slack.calls_bot_at(f"{process.url}/slack/events")
        assert (await route.verify_url()).json() == {"challenge": "a-challenge"}
        for wrong in ({"secret": "another"}, {"age": 600.0}, {"signature": "v0=00"}):
            assert (await route.post(body, "application/json", **wrong)).status_code == 401
        assert (await route.post("x" * 1_000_001, "application/json")).status_code == 413


async def run(platform_engineer: Command, environ: dict[str, str], *arguments: str) -> tuple[int, str]:
    done = await asyncio.to_thread(platform_engineer, "slack", "--port", "0", *arguments, **environ)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("variable", "value"), [("SLACK_BOT_TOKEN", "xoxb-wrong-one"), ("SLACK_APP_TOKEN", "xapp-wrong-one")]
)
async def test_a_token_that_slack_does_not_take_is_named(
    slack: Slack, platform_engineer: Command, variable: str, value: str
) -> None:
    code, said = await run(platform_engineer, {**slack.environ(), variable: value})
    assert code == 2
    assert said.startswith(f"platform-engineer: Slack rejects {variable} (invalid_auth): it must be ")
    assert "wrong-one" not in said
    assert len(said.splitlines()) == 1


async def test_a_token_without_the_right_scope_says_which(slack: Slack, platform_engineer: Command) -> None:
    slack.app.app_scopes = frozenset()
    code, said = await run(platform_engineer, slack.environ())
    assert code == 2
    assert "SLACK_APP_TOKEN lacks the scope connections:write" in said


async def test_a_port_in_use_and_a_bad_file_are_said_in_a_sentence(
    slack: Slack, platform_engineer: Command, tmp_path: Path
) -> None:
    port = slack.api_url.split(":")[2].split("/")[0]
    code, said = await run(platform_engineer, {**slack.environ(), "SLACK_PORT": "1"}, "--port", port)
    assert (code, said) == (
        2,
        f"platform-engineer: Port {port} on 127.0.0.1 is already in use; choose another with --port "
        "(0 takes any free one).\n",
    )
    (tmp_path / "channels.yaml").write_text("channels: {help: {}}", encoding="utf-8")
    code, said = await run(platform_engineer, {**slack.environ(), "SLACK_CHANNELS_FILE": "channels.yaml"})
    assert code == 2
    assert "channels.yaml" in said


@pytest.mark.long
@pytest.mark.process
async def test_a_bot_on_standby_takes_over_when_the_active_one_is_killed(
    slack: Slack, tmp_path: Path, database: str
) -> None:
    def bot_on(machine: str, supervisor_timeout: int) -> CommandLine:
        folder = tmp_path / machine
        folder.mkdir()
        shared = {"SLACK_SESSIONS": "postgres", "SLACK_SESSIONS_POSTGRES_DSN": database}
        environ = {"SUPERVISOR_URL": UNREACHABLE, "SUPERVISOR_TIMEOUT": str(supervisor_timeout)}
        environ |= {**slack.environ(), **shared, "DATA_DIR": str(folder)}
        return CommandLine(["slack", "--port", "0"], environ)

    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    second = bot_on("second", supervisor_timeout=0)
    async with bot_on("first", supervisor_timeout=3600) as first:
        starting = asyncio.create_task(second.__aenter__())
        try:
            await slack.until(lambda: any("is on standby at" in line for line in second.output))
            [line] = [line for line in second.output if "is on standby at" in line]
            assert "another bot uses Postgres at" in line
            assert PASSWORD not in line
            address = re.findall(r"http://[\d.:]+\d", line)[0]
            assert await get(f"{address}/healthz") == (200, '{"status":"ok"}')
            assert (await get(f"{address}/readyz"))[0] == 503
            question = await ada.says(channel, f"{slack.mention} what is the plan?")
            await slack.until(lambda: slack.calls("assistant.threads.setStatus"))
            await first.stop(signal.SIGKILL)
            await starting
            assert second.url == address
            assert await get(f"{second.url}/readyz") == (200, '{"status":"ready"}')
            # It continues the run of the first one, which waits for the supervisor, and gives up earlier.
            await slack.until(lambda: "cannot reach the supervisor" in ada.reads(channel, question.ts))
            assert ada.reads(channel, question.ts).count("cannot reach the supervisor") == 1
        finally:
            if not starting.done():
                starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            assert await second.stop() == 0


async def test_a_bot_on_standby_stops_on_a_signal(slack: Slack, tmp_path: Path, database: str) -> None:
    shared = {"SLACK_SESSIONS": "postgres", "SLACK_SESSIONS_POSTGRES_DSN": database}
    with closing(in_postgres(database)):
        waiting = CommandLine(["slack", "--port", "0"], {**slack.environ(), **shared, "DATA_DIR": str(tmp_path)})
        starting = asyncio.create_task(waiting.__aenter__())
        await slack.until(lambda: any("is on standby at" in line for line in waiting.output))
        starting.cancel()  # terminates the process and waits for it
        await asyncio.gather(starting, return_exceptions=True)
        assert waiting.process is not None
        assert waiting.process.returncode == 0


async def test_a_bot_that_was_replaced_ends_its_process(slack: Slack, tmp_path: Path, database: str) -> None:
    shared = {"SLACK_SESSIONS": "postgres", "SLACK_SESSIONS_POSTGRES_DSN": database}
    async with CommandLine(["slack", "--port", "0"], {**slack.environ(), **shared, "DATA_DIR": str(tmp_path)}) as bot:
        assert bot.process is not None
        # Another bot takes over as soon as the connection of this one is cut.
        with closing(PostgresBotStore(BotStoreAddress(database), lambda _error: None)) as other:
            while not other.activate():
                await asyncio.to_thread(disconnect_all, database)
            assert await bot.process.wait() == 1
    assert "has taken over, so this one stops" in "".join(bot.output)
