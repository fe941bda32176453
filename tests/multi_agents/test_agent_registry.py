from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry, known_manifests
from ai_platform_engineering.settings import Settings, load_settings
from tests.multi_agents.loopback import Request, always, card, response, serving


def settings_of(**environ: str) -> Settings:
    return load_settings({"AGENT_RECHECK_INTERVAL": "0.05", **environ}, env_file=None)


def registry_of(**environ: str) -> AgentRegistry:
    return AgentRegistry(settings_of(**environ), {})


@asynccontextmanager
async def watching(registry: AgentRegistry, on_change: Callable[[str], None]) -> AsyncIterator[asyncio.Task[None]]:
    """The registry checks its agents until the block is left; then its connections are closed."""
    async with aclosing(registry):
        task = asyncio.create_task(registry.watch(on_change))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()


def manifest_file(directory: Path, name: str, **keys: str) -> None:
    lines = {"name": name, "description": f"All about {name}.", "prompt": "You help.", **keys}
    (directory / f"{name}.yaml").write_text("\n".join(f"{key}: {value}" for key, value in lines.items()))


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)


class TestEntries:
    def test_agents_are_sorted_into_local_and_remote(self, tmp_path: Path) -> None:
        manifest_file(tmp_path, "inventory")
        manifest_file(tmp_path, "billing", requires="[BILLING_URL]")
        settings = settings_of(AGENTS_DIR=str(tmp_path), WEATHER_AGENT_URL="http://weather.test", SANDBOX="false")
        registry = AgentRegistry.load(settings)
        assert "inventory" in {entry.name for entry in registry.local()}
        assert {entry.name for entry in registry.remote()} == {"weather"}
        assert {entry.name for entry in registry.enabled()} == {
            entry.name for entry in (*registry.local(), *registry.remote())
        }
        billing = registry.entry("billing")
        assert billing is not None
        assert not billing.enabled
        assert registry.entry("nosuch") is None

    def test_a_manifest_of_the_users_replaces_ours(self, tmp_path: Path) -> None:
        manifest_file(tmp_path, "netutils", title="Ours no longer")
        assert known_manifests(settings_of(AGENTS_DIR=str(tmp_path)))["netutils"].title == "Ours no longer"

    @pytest.mark.parametrize(
        ("environ", "consequence"),
        [
            ({}, "it answers from the sandbox"),
            ({"SANDBOX": "false"}, "it is off"),
            ({"SANDBOX": "false", "ENABLE_JIRA": "true"}, "it fails"),
        ],
    )
    def test_an_agent_with_some_of_its_settings_is_a_problem(self, environ: dict[str, str], consequence: str) -> None:
        given = {"JIRA_URL": "https://jira.example", "JIRA_USERNAME": "me", **environ}
        [problem] = AgentRegistry.load(settings_of(**given)).warnings
        assert problem == f"jira: JIRA_URL is set, but JIRA_API_TOKEN is not set, so {consequence}."
        assert not AgentRegistry.load(settings_of(**given, JIRA_API_TOKEN="token")).warnings

    def test_unknown_names_are_problems(self) -> None:
        [problem] = registry_of(DISTRIBUTED_AGENTS="wether", WEATHER_AGENT_URL="http://weather.test").problems
        assert "'weather'" in problem


class TestCheck:
    async def test_what_was_found_is_a_read_only_snapshot(self, unused_port: int) -> None:
        async with serving(always(response(200, card("  Weather for\n any place.")))) as server:
            tides = f"http://127.0.0.1:{unused_port}"
            async with aclosing(registry_of(WEATHER_AGENT_URL=server.address, TIDES_AGENT_URL=tides)) as registry:
                before = registry.reachability
                found = await registry.check()
        assert before == {}
        assert {name: result.ok for name, result in found.items()} == {"weather": True, "tides": False}
        assert registry.description("weather") == "Weather for any place."
        assert registry.description("tides") == "The remote agent tides."
        with pytest.raises(TypeError):
            found["weather"] = found["tides"]  # type: ignore[index]

    async def test_no_check_when_told_to_skip(self) -> None:
        async with serving(always(response(200, card()))) as server:
            registry = registry_of(WEATHER_AGENT_URL=server.address, SKIP_AGENT_CONNECTIVITY_CHECK="true")
            assert await registry.check() == {}
            assert server.requests == []

    async def test_it_takes_no_longer_than_its_deadline(self) -> None:
        async def answer(_: Request) -> bytes:
            await asyncio.sleep(30)
            return b""

        async with serving(answer) as server:
            environ = {"WEATHER_AGENT_URL": server.address, "AGENT_CONNECTIVITY_TIMEOUT": "0.2"}
            async with asyncio.timeout(15), aclosing(registry_of(**environ)) as registry:
                found = await registry.check()
        assert found["weather"].reason == "no answer within 0.2 s"

    async def test_the_agents_key_goes_along_and_the_supervisors_own_does_not(self) -> None:
        own = {"A2A_AUTH_SHARED_KEY": "k3y-of-the-supervisor"}
        async with serving(always(response(200, card()))) as server:
            address = {"WEATHER_AGENT_URL": server.address}
            for keys in ({}, {"A2A_AGENTS_AUTH_KEY": "k3y-of-all-agents"}, {"A2A_AGENTS_SHARE_KEY": "true"}):
                async with aclosing(registry_of(**address, **own, **keys)) as registry:
                    await registry.check()
        sent = [headers.get("authorization") for _, headers in server.requests]
        assert sent == [None, "bearer k3y-of-all-agents", "bearer k3y-of-the-supervisor"]

    async def test_one_line_per_agent_and_no_password(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, unused_port: int
    ) -> None:
        manifest_file(tmp_path, "inventory")
        manifest_file(tmp_path, "billing", requires="[BILLING_URL]")
        caplog.set_level(logging.INFO)
        async with serving(always(response(200, card()))) as server:
            settings = settings_of(
                AGENTS_DIR=str(tmp_path),
                WEATHER_AGENT_URL=server.address.replace("//", "//bob:hunter2@"),
                TIDES_AGENT_URL=f"http://bob:hunter2@127.0.0.1:{unused_port}",
                DISTRIBUTED_AGENTS="nosuch",
                SANDBOX="false",
            )
            async with aclosing(AgentRegistry.load(settings)) as registry:
                await registry.check()
        shown = {record.getMessage(): record.levelname for record in caplog.records}
        lines = "\n".join(shown)
        assert shown["inventory: in-process (needs no settings)"] == "INFO"
        assert shown["billing: off (BILLING_URL is not set)"] == "INFO"
        assert shown[f"weather: remote at {server.address.replace('//', '//***@')}, reachable"] == "INFO"
        [unreachable] = [line for line in shown if line.startswith("tides: ")]
        assert unreachable.endswith("not reachable: connection refused")
        assert shown[unreachable] == "WARNING"
        assert [level for line, level in shown.items() if "'nosuch'" in line] == ["WARNING"]
        assert "hunter2" not in lines


class TestWatch:
    async def test_an_agent_that_comes_up_later_is_noticed_once(self, unused_port: int) -> None:
        registry = registry_of(WEATHER_AGENT_URL=f"http://127.0.0.1:{unused_port}")
        await registry.check()
        changed: list[str] = []
        async with watching(registry, changed.append):
            await asyncio.sleep(0.2)
            assert changed == []
            async with serving(always(response(200, card())), unused_port) as server:
                await eventually(lambda: len(changed) >= 1)
                assert registry.reachability["weather"].ok
                already = len(server.requests)
                await eventually(lambda: len(server.requests) >= already + 2)
                assert changed == ["weather"]

    async def test_a_new_description_is_noticed(self) -> None:
        texts = ["first", "first", "second"]

        async def answer(_: Request) -> bytes:
            return response(200, card(texts.pop(0) if len(texts) > 1 else texts[0]))

        async with serving(answer) as server:
            registry = registry_of(WEATHER_AGENT_URL=server.address)
            await registry.check()
            assert registry.description("weather") == "first"
            changed: list[str] = []
            async with watching(registry, changed.append):
                await eventually(lambda: len(changed) >= 1)
            assert registry.description("weather") == "second"

    async def test_an_agent_that_goes_and_comes_back_is_noticed_again(self, unused_port: int) -> None:
        registry = registry_of(WEATHER_AGENT_URL=f"http://127.0.0.1:{unused_port}")
        changed: list[str] = []
        async with watching(registry, changed.append):
            async with serving(always(response(200, card())), unused_port):
                await eventually(lambda: len(changed) >= 1)
            await eventually(lambda: not registry.reachability["weather"].ok)
            assert changed == ["weather"]
            async with serving(always(response(200, card())), unused_port):
                await eventually(lambda: len(changed) >= 2)

    async def test_certificates_are_read_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[ssl.SSLContext] = []
        made = ssl.create_default_context

        def counted(*args: Any, **kwargs: Any) -> ssl.SSLContext:
            read.append(made(*args, **kwargs))
            return read[-1]

        monkeypatch.setattr(ssl, "create_default_context", counted)
        async with serving(always(response(200, card()))) as server:
            registry = registry_of(WEATHER_AGENT_URL=server.address)
            await registry.check()
            async with watching(registry, lambda _name: None):
                await eventually(lambda: len(server.requests) >= 4)
        assert len(read) <= 1

    async def test_a_listener_that_fails_does_not_end_the_watch(self) -> None:
        called: list[str] = []

        def fail(name: str) -> None:
            called.append(name)
            raise RuntimeError("cannot take it up")

        async with (
            serving(always(response(200, card()))) as weather,
            serving(always(response(200, card()))) as tides,
        ):
            registry = registry_of(WEATHER_AGENT_URL=weather.address, TIDES_AGENT_URL=tides.address)
            async with watching(registry, fail) as watch:
                await eventually(lambda: len(called) >= 2)
                assert not watch.done()
        assert sorted(called) == ["tides", "weather"]

    async def test_without_remote_agents_there_is_nothing_to_watch(self) -> None:
        async with asyncio.timeout(15):
            await registry_of().watch(lambda name: None)
