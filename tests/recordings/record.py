"""Records conversations with the sandbox: `python -m tests.recordings.record` writes them anew."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ai_platform_engineering.events import Event
from ai_platform_engineering.events_json import Asked, decode_line, encode_line
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.utils.a2a_common.server.recorder import merged
from tests.servers import Caller, calling, serving

HERE = Path(__file__).parent

CONVERSATIONS: Mapping[str, Sequence[str]] = {
    "one-agent": ["show argocd version"],
    "two-agents": ["compare Jira and GitHub issues"],
    "one-agent-twice": ["compare the guestbook app and the payments-api app"],
    "failing-tool": ["sync the nosuchapp app"],
    "change": ["create a Jira ticket for the slow checkout page", "add a comment to it: looking into it"],
    "nobody-serves-it": ["order me a pizza"],
}

_IDS = re.compile(r"(?:lc_run--)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@asynccontextmanager
async def supervisor(folder: Path) -> AsyncIterator[Caller]:
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}
    async with serving(create_app, environ) as url, calling(url) as caller:
        yield caller


async def record(caller: Caller, name: str) -> str:
    """A conversation as lines of JSON, with short ids and each piece of text whole."""
    lines: list[str] = []
    for question in CONVERSATIONS[name]:
        events = merged(await caller.ask(question, context_id=name))
        lines += [encode_line(Asked(question, name)), *map(encode_line, events)]
    ids: dict[str, str] = {}
    return _IDS.sub(lambda match: ids.setdefault(match[0], f"id-{len(ids) + 1}"), "\n".join(lines) + "\n")


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
