"""The Slack bot as a process to be measured: `python -m benchmarks.slack_bot`. What its supervisor says is prepared.

Reads one order, a line of JSON: the workspace, who asks where, and of how many words and pieces each answer is.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterable
from tempfile import TemporaryDirectory
from typing import Any

from a2a.types.a2a_pb2 import SendMessageRequest, StreamResponse, Task, TaskArtifactUpdateEvent

from ai_platform_engineering.events import SUPERVISOR, Event, FinalResult, MessageEnded, TextDelta
from ai_platform_engineering.integrations.slack_bot.assembly import assemble
from ai_platform_engineering.integrations.slack_bot.channels import load_channels
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import open_store
from ai_platform_engineering.integrations.slack_bot.supervisor_link import SupervisorLink
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import web_client
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode, stamp

_ASKING_SECONDS = 0.3
"""From the question to the first event: long enough for everybody to have asked."""


class PreparedSupervisor:
    resumes = True
    address = "http://prepared"

    def __init__(self, pieces: int, words: int, every: float) -> None:
        self.client = self
        self._every = every
        self._updates = _encoded(_answer(pieces, words))
        self.first_event: dict[str, float] = {}
        self.told = 0

    async def send_message(self, request: SendMessageRequest) -> AsyncIterator[StreamResponse]:
        question = request.message.parts[0].text
        yield StreamResponse(task=Task(id=f"task-{question}", context_id=request.message.context_id))
        await asyncio.sleep(_ASKING_SECONDS)
        self.first_event[question] = time.time()
        for update in self._updates:
            yield update
            self.told += 1
            await asyncio.sleep(self._every)


class PreparedLink(SupervisorLink):
    def __init__(self, settings: Settings, supervisor: PreparedSupervisor) -> None:
        super().__init__(settings)
        self._prepared = supervisor

    async def supervisor(self, *, wait: bool = True) -> Any:
        return self._prepared


def _answer(pieces: int, words: int) -> Iterable[Event]:
    written = [f"word{number}{chr(10) * 2 if number % 60 == 59 else ' '}" for number in range(words)]
    size = max(1, words // pieces)
    for start in range(0, words, size):
        yield TextDelta(SUPERVISOR, "m1", "".join(written[start : start + size]))
    yield MessageEnded(SUPERVISOR, "m1")
    yield FinalResult("".join(written), "m1")


def _encoded(events: Iterable[Event]) -> list[StreamResponse]:
    stream = StreamState("task", "context", "trace")
    updates = [*begin(stream), *(update for event in events for update in encode(stream, event))]
    prepared = []
    for number, update in enumerate(updates, 1):
        stamp(update, number)
        is_artifact = isinstance(update, TaskArtifactUpdateEvent)
        prepared.append(StreamResponse(artifact_update=update) if is_artifact else StreamResponse(status_update=update))
    # The first says only that it has begun.
    return prepared[1:]


async def work(order: dict[str, Any], folder: str) -> dict[str, Any]:
    settings = load_settings({"DATA_DIR": folder, "SLACK_SESSIONS": "sqlite"}, env_file=None)
    supervisor = PreparedSupervisor(order["pieces"], order["words"], order["every"])
    store = open_store(settings)
    async with web_client(order["token"], order["url"]) as client:
        bot = assemble(settings, client, store, load_channels(None), link=PreparedLink(settings, supervisor))
        await bot.start()
        for channel, ts, person in order["questions"]:
            place = ThreadPlace(order["team"], channel, ts)
            await bot.take(Incoming(place, ts, ts, SlackUser(order["team"], person)))
        while bot.open_threads:  # noqa: ASYNC110 - threads end without telling
            await asyncio.sleep(0.01)
        await bot.aclose()
    store.close()
    return {"first_event": supervisor.first_event, "events": supervisor.told}


def main() -> None:
    print("ready", flush=True)
    order = json.loads(sys.stdin.readline())
    with TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(work(order, folder))), flush=True)
    # Whoever measures looks at the process before it ends.
    sys.stdin.readline()


if __name__ == "__main__":
    main()
