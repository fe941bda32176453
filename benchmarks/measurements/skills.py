"""Skills: the cost of the start, a list, a search and a request, by the number of skills.

Beside them: deepagents' own `SkillsMiddleware`, which reads the same folders in each new conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

import httpx
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware
from langchain.agents.middleware import ModelRequest
from langchain_core.messages import SystemMessage
from langgraph.runtime import Runtime

from ai_platform_engineering.graphs.skills_text import listed_section, searched_section
from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.rest.app import create_rest
from ai_platform_engineering.skills_middleware.skill import GLOBAL, Provenance, Skill, SkillContent, content_digest
from ai_platform_engineering.skills_middleware.store.store import NewSkill
from benchmarks.effort import Effort
from benchmarks.rows import Row
from benchmarks.scenario import supervisor_model
from benchmarks.skills.folders import write_folders

_QUERIES: Final = (
    "rollback",
    "renew a certificate",
    "who is on call for payments and what do I do with an alert",
    "terraf",
)
LABELS: Final = {
    "start": "Start of the catalog",
    "list": "GET /skills, first 50",
    "search": "Search",
    "request": "Before a turn of the model",
    "change": "A new skill until the next turn has it",
    "prompt": "Prompt",
    "bare.request": "SkillsMiddleware: a new conversation",
    "bare.prompt": "SkillsMiddleware: prompt",
}
_STARTS: Final = 3
_CHANGES: Final = 10


def skills(effort: Effort) -> list[Row]:
    rows = []
    for count in effort.skills:
        with TemporaryDirectory() as folder:
            rows += asyncio.run(_measured(Path(folder), count, effort.calls))
    return rows


async def _measured(folder: Path, count: int, calls: int) -> list[Row]:
    directory = folder / "skills"
    await asyncio.to_thread(write_folders, directory, count)
    settings = load_settings({"DATA_DIR": str(folder / "data"), "SKILLS_DIR": str(directory)}, env_file=None)
    numbers = {"start": min([await _start(settings) for _ in range(min(_STARTS, calls))])}
    catalog = SkillCatalog(settings)
    await catalog.start()
    try:
        numbers["search"] = await _search(catalog, calls)
        numbers["list"] = await _list(catalog, settings, calls)
        numbers["request"] = await _middle(lambda: _request(catalog, settings), calls)
        prompt = len((await _request(catalog, settings)).encode()) / 1000
        numbers["change"] = await _change(catalog, min(_CHANGES, calls))
    finally:
        await catalog.aclose()
    bare_calls = max(1, min(calls, 2_000 // count))
    bare = await _middle(lambda: _bare_request(directory), bare_calls)
    bare_prompt = len((await _bare_request(directory)).encode()) / 1000
    return [
        *(
            Row(f"skills.{count}.{name}", f"{LABELS[name]}, {count:,} skills", value, "ms")
            for name, value in numbers.items()
        ),
        Row(f"skills.{count}.prompt", f"{LABELS['prompt']}, {count:,} skills", prompt, "KB", prompt / bare_prompt),
        Row(f"skills.{count}.bare.request", f"{LABELS['bare.request']}, {count:,} skills", bare, "ms"),
        Row(f"skills.{count}.bare.prompt", f"{LABELS['bare.prompt']}, {count:,} skills", bare_prompt, "KB", 1.0),
    ]


async def _start(settings: Settings) -> float:
    began = perf_counter()
    catalog = SkillCatalog(settings)
    await catalog.start()
    milliseconds = (perf_counter() - began) * 1000
    await catalog.aclose()
    return milliseconds


async def _search(catalog: SkillCatalog, calls: int) -> float:
    view = catalog.view(ANONYMOUS)

    async def search_all() -> None:
        for query in _QUERIES:
            view.search(query, 10)

    return await _middle(search_all, calls) / len(_QUERIES)


async def _list(catalog: SkillCatalog, settings: Settings, calls: int) -> float:
    transport = httpx.ASGITransport(create_rest(catalog, settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def get() -> None:
            (await client.get("/skills", params={"limit": 50})).raise_for_status()

        return await _middle(get, calls)


async def _request(catalog: SkillCatalog, settings: Settings) -> str:
    """What a turn of the model takes from the catalog: the section of its prompt."""
    await catalog.reload_changed()
    found = catalog.view(ANONYMOUS).skills
    return listed_section(found.values(), settings.skills_prompt_max_chars) or searched_section(len(found))


async def _bare_request(directory: Path) -> str:
    """The same of `SkillsMiddleware` at the first turn of a conversation."""
    middleware = SkillsMiddleware(backend=FilesystemBackend(root_dir=directory, virtual_mode=True), sources=["/"])
    state = await middleware.abefore_agent({"messages": []}, Runtime(), {})
    assert state is not None
    assert not state["skills_load_errors"]
    request = ModelRequest(
        model=supervisor_model(), messages=[], system_message=SystemMessage(""), state={"messages": [], **state}
    )
    return middleware.modify_request(request).system_message.text


async def _change(catalog: SkillCatalog, changes: int) -> float:
    took = []
    assert catalog.store is not None
    for number in range(changes):
        name = f"added-{number}"
        document = f"---\nname: {name}\ndescription: Added while it runs.\n---\nDo it."
        skill = Skill(name, "Added while it runs.", Provenance("api"), digest=content_digest(document, {}, GLOBAL))
        began = perf_counter()
        await catalog.store.create(NewSkill(skill, SkillContent(document, "Do it.")), None)
        await catalog.reload_changed()
        assert name in catalog.view(ANONYMOUS).skills
        took.append((perf_counter() - began) * 1000)
    return median(took)


async def _middle(call: Callable[[], Awaitable[object]], calls: int) -> float:
    """The median in milliseconds; the first call, which fills caches, is not counted."""
    await call()
    took = []
    for _ in range(calls):
        began = perf_counter()
        await call()
        took.append((perf_counter() - began) * 1000)
    return median(took)
