"""Nothing that waits for a person is lost when its processes are killed."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from ai_platform_engineering.events import FinalResult, ToolFinished
from ai_platform_engineering.sandbox.records import Application
from ai_platform_engineering.sandbox.store import SandboxStore, sandbox_path
from tests.invariants import check_task
from tests.people.dialogues import Dialogue
from tests.servers import CommandLine, calling


def live_revision(folder: Path) -> str:
    with SandboxStore(sandbox_path(folder)).read() as session:
        application = session.find(Application, "payments-api")
        assert application is not None
        return application.live


async def test_an_approval_outlives_the_supervisor_and_the_agent_that_asks(tmp_path: Path, unused_port: int) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "LOG_LEVEL": "warning"}
    environ |= {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": f"http://127.0.0.1:{unused_port}"}
    agent, supervisor = ["agent", "argocd", "--port", str(unused_port)], ["serve", "--port", "0"]

    async with CommandLine(agent, environ) as argocd, CommandLine(supervisor, environ) as serving:
        async with calling(serving.url) as caller:
            talk = Dialogue(caller, "c")
            (form,) = await talk.ask("Roll Back Application")
            (approval,) = await talk.answer({"values": {"application": "payments-api", "reason": "errors"}}, form)
            assert approval.agent == "argocd"
        before = live_revision(tmp_path)
        await asyncio.gather(argocd.stop(signal.SIGKILL), serving.stop(signal.SIGKILL))

    async with CommandLine(agent, environ), CommandLine(supervisor, environ) as serving, calling(serving.url) as caller:
        later = Dialogue(caller, "c")
        later.task_id, later.events = talk.task_id, talk.events
        assert live_revision(tmp_path) == before
        assert not await later.answer({"decisions": [{"type": "approve"}]}, approval)
        check_task(later.events)
        assert isinstance(later.events[-1], FinalResult)
        assert [event.tool for event in later.events if isinstance(event, ToolFinished) and event.ok] == [
            "start_workflow",
            "rollback_application",
        ]
    assert live_revision(tmp_path) != before
