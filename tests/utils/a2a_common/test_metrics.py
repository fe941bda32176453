"""`/metrics`: the numbers of a server, as Prometheus reads them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.types.a2a_pb2 import CancelTaskRequest, Message, Part, Role, Task
from langchain_core.tools import tool
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from ai_platform_engineering.events import AgentFinished, Event, Failed, FinalResult, ToolFinished
from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.storage.audit.stores import audit_log
from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.storage.event_log.task_record import StoredRequest
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent
from ai_platform_engineering.utils.a2a_common.server.a2a_app import metrics_route, with_a2a
from ai_platform_engineering.utils.a2a_common.server.a2a_server import agent_card
from ai_platform_engineering.utils.a2a_common.server.executor import RunExecutor
from ai_platform_engineering.utils.a2a_common.server.metrics import FAILURE_CODES, RunMetrics
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode
from tests.runs.graphs import agent
from tests.servers import ROOT, Caller, calling, serving

KEY = "correct-horse-battery"
QUESTION = "show argocd version"


class Scrape:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value of a sample; None if there is none with exactly these labels."""
        return self._samples.get((f"platform_engineer_{name}", frozenset(labels.items())))

    def labels(self, name: str) -> set[tuple[str, ...]]:
        found = self.families[f"platform_engineer_{name}"].samples
        return {tuple(sample.labels.values()) for sample in found}


async def scrape(url: str, **headers: str) -> Scrape:
    async with httpx.AsyncClient() as client:
        response = await client.get(f"{url}/metrics", headers=headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Scrape(response.text)


async def scrape_when(url: str, **gauges: int) -> Scrape:
    """The first scrape with these values."""
    async with asyncio.timeout(60):
        while True:
            found = await scrape(url)
            if all(found(name) == value for name, value in gauges.items()):
                return found


async def ask(url: str, question: str = QUESTION) -> list[Event]:
    async with calling(url) as caller:
        return await caller.ask(question)


@tool
async def waits() -> str:
    """Runs until it is cancelled."""
    await asyncio.Event().wait()
    return ""


@asynccontextmanager
async def scripted(*turns: Turn) -> AsyncIterator[Caller]:
    """A server of one agent with a scripted model and the tool `waits`."""

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        yield

    def app(settings: Settings) -> Starlette:
        metrics = RunMetrics(["supervisor"])
        log = MemoryEventLog()
        log.subscribe(metrics.observe_log)
        graph = agent("supervisor", ScriptedChatModel(script=turns), [waits])
        card = agent_card(name="t", description="t", url=settings.public_url, version="1")
        executor = RunExecutor(BaseLangGraphAgent("supervisor", lambda _: graph, metrics.model_turn), log, settings)
        made = with_a2a(executor, log, card, settings, running=running, tools=lambda _: [], audit=audit_log(settings))
        made.router.routes.append(metrics_route(metrics, "supervisor", made.state.now))
        return made

    async with serving(app, {}) as url, calling(url) as caller:
        yield caller


class TestSupervisor:
    async def test_a_run_is_counted(self, tmp_path: Path) -> None:
        async with serving(create_app, {"DATA_DIR": str(tmp_path)}) as url:
            before = await scrape(url)
            await ask(url)
            after = await scrape_when(url, runs_in_progress=0)
        assert before("runs_ended_total", outcome="completed", code="") == 0
        assert before("events_total") == 0
        assert after("runs_ended_total", outcome="completed", code="") == 1
        assert (after("events_total") or 0) > 10
        assert after("run_duration_seconds_count", outcome="completed") == 1
        assert after("run_duration_seconds_bucket", outcome="completed", le="+Inf") == 1
        assert 0 < (after("run_duration_seconds_sum", outcome="completed") or 0) < 300
        assert after("tool_calls_total", agent="argocd", outcome="ok") == 1
        assert after("delegations_total", agent="argocd", outcome="ok") == 1
        assert (after("model_turns_total", agent="supervisor", outcome="ok") or 0) >= 2
        assert (after("model_turns_total", agent="argocd", outcome="ok") or 0) >= 1
        assert after("store_operation_seconds_count", store="event_log", kind="sqlite", operation="commit")
        for operation in ("read", "write", "trim"):
            assert after("store_operation_seconds_count", store="checkpoints", kind="sqlite", operation=operation)
        assert (after("runs_queued"), after("degraded")) == (0, 0)
        assert {"process_resident_memory_bytes", "python_info", "python_gc_collections"} <= after.families.keys()
        assert QUESTION not in after.text

    async def test_remote_agent_and_supervisor_count_separately(self, tmp_path: Path) -> None:
        environ = {"DATA_DIR": str(tmp_path)}
        async with serving(lambda settings: create_agent_app(settings, "argocd"), environ) as agent_url:
            remote = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent_url}
            async with serving(create_app, {**environ, **remote}) as url:
                await ask(url)
                supervisor, argocd = await scrape(url), await scrape(agent_url)
        assert supervisor("build_info", version="0.1.0", server="supervisor") == 1
        assert argocd("build_info", version="0.1.0", server="argocd") == 1
        assert supervisor("delegations_total", agent="argocd", outcome="ok") == 1
        assert argocd.labels("delegations") == set()
        assert {agent for agent, _ in supervisor.labels("model_turns")} == {"supervisor"}
        assert {agent for agent, _ in argocd.labels("model_turns")} == {"argocd"}
        for found in (supervisor, argocd):
            assert found("tool_calls_total", agent="argocd", outcome="ok") == 1
            assert found("runs_ended_total", outcome="completed", code="") == 1
        assert supervisor("events_total") != argocd("events_total")
        # The supervisor's duration contains the agent's, whose events are written together.
        durations = [found("run_duration_seconds_sum", outcome="completed") or 0 for found in (supervisor, argocd)]
        assert durations[0] >= durations[1] > 0

    async def test_a_form_ends_a_run(self, tmp_path: Path) -> None:
        asks = "argocd.version_service__version=always"
        async with serving(create_app, {"DATA_DIR": str(tmp_path), "REQUIRE_APPROVAL_OVERRIDES": asks}) as url:
            await ask(url)
            found = await scrape(url)
        assert found("runs_ended_total", outcome="input_required", code="") == 1
        assert found("run_duration_seconds_count", outcome="input_required") == 1
        assert found.labels("tool_calls") == set()

    async def test_a_store_that_cannot_be_used_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "conversations.db").write_bytes(b"no database" * 1000)
        async with serving(create_app, {"DATA_DIR": str(tmp_path)}) as url:
            assert (await scrape(url))("degraded") == 1


class TestAccess:
    @pytest.mark.parametrize("public", ["false", "true"])
    async def test_authentication(self, tmp_path: Path, public: str) -> None:
        environ = {"DATA_DIR": str(tmp_path), "A2A_AUTH_SHARED_KEY": KEY, "METRICS_PUBLIC": public}
        async with serving(create_app, environ) as url, httpx.AsyncClient() as client:
            await scrape(url, Authorization=f"Bearer {KEY}")
            assert (await client.get(f"{url}/metrics")).status_code == (200 if public == "true" else 401)
            assert (await client.get(f"{url}/tools")).status_code == 401

    async def test_an_agent_has_the_key_of_agents(self, tmp_path: Path) -> None:
        environ = {"DATA_DIR": str(tmp_path), "A2A_AGENTS_AUTH_KEY": KEY}
        app_of: Any = lambda settings: create_agent_app(settings, "argocd")  # noqa: E731
        async with serving(app_of, environ) as url, httpx.AsyncClient() as client:
            await scrape(url, Authorization=f"Bearer {KEY}")
            assert (await client.get(f"{url}/metrics")).status_code == 401

    async def test_other_host_names_are_refused(self, tmp_path: Path) -> None:
        environ = {"DATA_DIR": str(tmp_path), "METRICS_PUBLIC": "true"}
        async with serving(create_app, environ) as url, httpx.AsyncClient() as client:
            refused = await client.get(f"{url}/metrics", headers={"Host": "evil.example"})
        assert refused.status_code == 421


async def test_runs_queue_and_streams_are_those_of_the_moment() -> None:
    async with scripted(Turn("", [("waits", {})])) as caller, calling(caller.url) as other:
        first = asyncio.create_task(caller.ask("one", context_id="c"))
        await caller.heard.wait()
        second = asyncio.create_task(other.ask("two", context_id="c"))
        await other.heard.wait()
        found = await scrape(caller.url)
        assert (found("runs_in_progress"), found("runs_queued"), found("open_streams")) == (1, 1, 2)
        for task_id in (other.task_id, caller.task_id):
            await caller.client.cancel_task(CancelTaskRequest(id=task_id))
        await asyncio.gather(first, second)
        found = await scrape_when(caller.url, open_streams=0, runs_in_progress=0, runs_queued=0)
        assert found("runs_ended_total", outcome="canceled", code="") == 2
        # The second never began.
        assert found("run_duration_seconds_count", outcome="canceled") == 1


async def test_a_model_that_fails_is_counted_with_the_code_of_the_run() -> None:
    async with scripted(Turn("", error=RuntimeError("out of tokens"))) as caller:
        await caller.ask("q")
        found = await scrape(caller.url)
    assert found("model_turns_total", agent="supervisor", outcome="failed") == 1
    assert found("runs_ended_total", outcome="failed", code="internal") == 1


async def test_a_stream_that_its_caller_leaves_is_closed() -> None:
    async with scripted(Turn("", [("waits", {})])) as caller:
        listening = asyncio.create_task(caller.ask("q"))
        await caller.heard.wait()
        listening.cancel()
        await asyncio.wait({listening})
        await scrape_when(caller.url, open_streams=0, runs_in_progress=1)


async def test_resumed_runs_are_counted() -> None:
    metrics = RunMetrics(["supervisor"])
    log = MemoryEventLog()
    graph = agent("supervisor", ScriptedChatModel(script=[Turn("Done.")]))
    settings = load_settings({}, None)
    executor = RunExecutor(BaseLangGraphAgent("supervisor", lambda _: graph), log, settings, metrics)
    message = Message(message_id="m", role=Role.ROLE_USER, parts=[Part(text="q")])
    for task_id in ("killed", "stopped"):
        await log.create(Task(id=task_id, context_id=task_id, history=[message]))
        state = StreamState(task_id, task_id, "trace")
        await log.append(task_id, begin(state))
        if task_id == "stopped":
            await TaskEndings(log, "supervisor").hand_over(task_id)
        await executor.execute(Assignment(task_id, task_id, StoredRequest(message, ANONYMOUS, 0), resumes=True))
    assert metrics.recoveries == {("handover",): 1, ("lost",): 1}


async def test_the_documented_metrics_are_those_that_are_served() -> None:
    page = (ROOT / "docs/operate.md").read_text(encoding="utf-8")
    table, _, alerts = page.partition("\n## Metrics\n")[2].partition("\n## ")[0].partition("Suggested alerts")
    cells = re.findall(r"^\| (`[a-z].*?) \|", table, re.MULTILINE)
    names = re.findall("`(.*?)`", " ".join(cells))
    async with scripted(Turn("Done.")) as caller:
        families = (await scrape(caller.url)).families
    ours = {name.removeprefix("platform_engineer_") for name in families if name.startswith("platform_engineer_")}
    assert {name.removesuffix("_total") for name in names} == ours
    used = set(re.findall(r"platform_engineer_(\w+)", alerts))
    assert {name.removesuffix("_bucket").removesuffix("_total") for name in used} <= ours


def entries(state: StreamState, *events: Event) -> list[Entry]:
    updates = [*begin(state), *(update for event in events for update in encode(state, event))]
    return [Entry(seq, update) for seq, update in enumerate(updates, 1)]


class TestBounds:
    def test_every_code_of_this_server_has_its_label(self) -> None:
        package = ROOT / "ai_platform_engineering"
        modules = [*package.glob("runs/*.py"), *package.glob("utils/a2a_common/server/*.py")]
        written = "".join(module.read_text(encoding="utf-8") for module in modules)
        codes = set(re.findall(r'\bFailed\(\s*(?:code=)?"(\w+)"', written))
        assert "expired" in codes
        assert codes <= FAILURE_CODES

    def test_names_that_are_not_known_share_a_label(self) -> None:
        metrics = RunMetrics(["supervisor", "argocd"])
        made_up = [f"agent {number}" for number in range(100)]
        calls = [AgentFinished(name, name, ok=False) for name in [*made_up, "argocd"]]
        tools = [ToolFinished(name, "t", name, ok=True) for name in made_up]
        failed = Failed("a code from elsewhere", "It failed.")
        metrics.observe_log("t", entries(StreamState("t", "c", "trace"), *calls, *tools, failed))
        for name in made_up:
            metrics.model_turn(name, True)
        assert metrics.delegations == {("other", "failed"): 100, ("argocd", "failed"): 1}
        assert metrics.tool_calls == metrics.model_turns == {("other", "ok"): 100}
        assert metrics.runs["failed", "other"] == 1

    def test_runs_that_end_elsewhere_take_limited_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ai_platform_engineering.utils.a2a_common.server.metrics._MAX_BEGUN", 2)
        metrics = RunMetrics([])
        streams = [StreamState(f"t{number}", "c", "trace") for number in range(4)]
        for state in streams:
            metrics.observe_log(state.task_id, entries(state))
        for state in streams:
            metrics.observe_log(state.task_id, entries(state, FinalResult("a", "m"))[1:])
        assert metrics.runs["completed", ""] == 4
        assert sum(metrics.durations["completed",].counts) == 2
