"""Records conversations with the sandbox: `python -m tests.recordings.record` writes them anew."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ai_platform_engineering.events import Event, InputRequired
from ai_platform_engineering.events_json import Asked, decode_line, encode_line
from ai_platform_engineering.forms.answers import Dismissed, answer_text, read_answer
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.utils.a2a_common.server.recorder import merged
from tests.servers import Caller, calling, serving

HERE = Path(__file__).parent

Reply = Mapping[str, Any]
"""An answer to the open form: the JSON of `resume`."""

CONVERSATIONS: Mapping[str, Sequence[str | Reply]] = {
    "one-agent": ["show argocd version"],
    "two-agents": ["compare Jira and GitHub issues"],
    "one-agent-twice": ["compare the guestbook app and the payments-api app"],
    "failing-tool": ["sync the nosuchapp app"],
    "change": ["create a Jira ticket for the slow checkout page", "add a comment to it: looking into it"],
    "nobody-serves-it": ["order me a pizza"],
    "forms": [
        "roll back the payments-api app",
        {"values": {"reason": "too slow"}},
        {"decisions": [{"type": "reject", "message": "not during the sale"}]},
    ],
}

_IDS = re.compile(r"(?:lc_run--)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")


@asynccontextmanager
async def supervisor(folder: Path) -> AsyncIterator[Caller]:
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}
    async with serving(create_app, environ) as url, calling(url) as caller:
        yield caller


async def record(caller: Caller, name: str) -> str:
    """A conversation as lines of JSON, with short ids and each piece of text whole."""
    lines: list[str] = []
    for said in CONVERSATIONS[name]:
        if isinstance(said, str):
            text, events = said, await caller.ask(said, context_id=name)
        else:
            text = answer_text(read_answer(said) or Dismissed())
            events = await caller.ask({"resume": said}, context_id=name, task_id=caller.task_id)
        lines += [encode_line(Asked(text, name)), *map(encode_line, merged(events))]
    ids: dict[str, str] = {}
    return _IDS.sub(lambda match: ids.setdefault(match[0], f"id-{len(ids) + 1}"), "\n".join(lines) + "\n")


def tasks(recording: str) -> list[list[Event]]:
    """The events of each task in a recording: a run that follows forms continues their task."""
    found: list[list[Event]] = []
    for events in runs(recording):
        if found and isinstance(found[-1][-1], InputRequired):
            found[-1] += events
        else:
            found.append(events)
    return found


def runs(recording: str) -> list[list[Event]]:
    """The events of each run in a recording."""
    found: list[list[Event]] = []
    for line in recording.splitlines():
        item = decode_line(line).item
        if isinstance(item, Asked):
            found.append([])
        else:
            found[-1].append(item)
    return found


async def main() -> None:
    for name in CONVERSATIONS:
        with tempfile.TemporaryDirectory() as folder:
            async with supervisor(Path(folder)) as caller:
                (HERE / f"{name}.jsonl").write_text(await record(caller, name))


if __name__ == "__main__":
    asyncio.run(main())
