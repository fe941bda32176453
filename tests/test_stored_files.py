"""The stores of earlier versions are opened by this one, and everything in them is there.

`tests/fixtures/store_files.py` has written them. A change of a store that fails here needs a migration, not new files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from a2a.types.a2a_pb2 import GetTaskRequest

from ai_platform_engineering.events import FinalResult
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import open_store
from ai_platform_engineering.integrations.slack_bot.thread_view.content import text_of
from ai_platform_engineering.integrations.slack_bot.thread_view.state import from_json
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.wire import decode_task
from tests.fixtures.store_files import CONVERSATION, DOCUMENT, FILES, QUESTION, SKILL, STORES
from tests.invariants import check
from tests.servers import calling, serving
from tests.test_durability import frames

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Stored:
    folder: Path
    contents: dict[str, Any]
    url: str
    http: httpx.AsyncClient


def opened(version: Path, folder: Path) -> dict[str, str]:
    """The variables of a process on a copy of that version's stores."""
    for name in FILES:
        shutil.copyfile(version / name, folder / name)
    # The files grow old: nothing in them may be deleted for its age.
    return {
        "DATA_DIR": str(folder),
        "SANDBOX": "true",
        "OFFLINE_MODEL_DELAY": "0",
        "RAG_PRODUCT_DOCS": "false",
        "EVENT_LOG_MAX_AGE_DAYS": "0",
        "FORM_EXPIRY_HOURS": "0",
        "EMBEDDINGS_PROVIDER": "offline",
    }


VERSIONS = sorted(STORES.iterdir())


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=VERSIONS, ids=lambda path: path.name)
async def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stored]:
    folder = tmp_path_factory.mktemp("stores")
    environ = opened(request.param, folder)
    contents = json.loads((request.param / "contents.json").read_text(encoding="utf-8"))
    async with serving(create_app, environ) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        yield Stored(folder, contents, url, http)


async def test_a_finished_task_has_its_events_and_its_answer(stored: Stored) -> None:
    task_id = stored.contents["task"]
    sent = await frames(stored.http, stored.url, "tasks/resubscribe", {"id": task_id}, Last_Event_ID="0")
    assert [number for number, _ in sent] == list(range(len(sent)))
    assert sent[-1][1]["status"]["state"] == "completed"
    async with calling(stored.url) as caller:
        task = await caller.client.get_task(GetTaskRequest(id=task_id))
    ending = check(decode_task(task))
    assert isinstance(ending, FinalResult)
    assert ending.text == stored.contents["answer"]


async def test_a_conversation_goes_on(stored: Stored) -> None:
    """The question says neither what is asked about the app nor that it is one: the stored messages do."""
    async with calling(stored.url) as caller:
        ending = check(await caller.ask("what about payments-api?", context_id=CONVERSATION))
    assert isinstance(ending, FinalResult)
    assert "Application **payments-api**" in ending.text


async def test_a_form_that_waits_is_answered(stored: Stored) -> None:
    answer = {"resume": {"form_id": stored.contents["form"], "values": {"repository": "from-a-stored-form"}}}
    async with calling(stored.url) as caller:
        events = await caller.ask(answer, task_id=stored.contents["form_task"])
    assert isinstance(events[-1], FinalResult), events[-1]
    assert "from-a-stored-form" in events[-1].text


async def test_a_conversation_is_listed_read_and_renamed(stored: Stored) -> None:
    path = f"/conversations/{CONVERSATION}"
    first = (await stored.http.get(path)).json()["tasks"][0]
    assert (first["id"], first["question"], first["events"][-1]["text"]) == (
        stored.contents["task"],
        QUESTION,
        stored.contents["answer"],
    )
    assert (await stored.http.patch(path, json={"name": "Guestbook"})).status_code == 200
    listed = (await stored.http.get("/conversations", params={"search": "guestbook"})).json()["conversations"]
    assert (CONVERSATION, "Guestbook") in {(row["id"], row["name"]) for row in listed}


@pytest.mark.parametrize("query", ["policy", "undo deployment"], ids=["words", "meaning"])
async def test_a_document_is_found(stored: Stored, query: str) -> None:
    answer = await stored.http.post("/rag/v1/search", json={"query": query})
    assert {result["document_id"] for result in answer.json()["results"]} == {f"handbook:{DOCUMENT.name}"}, answer.text


async def test_a_skill_is_there(stored: Stored) -> None:
    skill = await stored.http.get(f"/skills/{SKILL}")
    assert "Greet the caller." in skill.text


async def test_a_slack_thread_has_its_conversation_and_the_state_of_its_run(stored: Stored) -> None:
    place = ThreadPlace(**stored.contents["slack_thread"])
    settings = load_settings({"DATA_DIR": str(stored.folder)}, env_file=None)
    with closing(open_store(settings)) as store:
        session, run = store.session(place), store.latest_run(place)
    assert session is not None
    assert run is not None
    assert (run.context_id, run.done) == (session.context_id, True)
    assert run.incoming.text == QUESTION
    state = from_json(run.state)
    assert (state.task_id, state.ended) == (run.task_id, True)
    assert stored.contents["answer"] in text_of(state.content)
