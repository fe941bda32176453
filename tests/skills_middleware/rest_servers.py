"""A supervisor on a loopback port, asked through its skills API."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.servers import serving

KEY = "correct-horse-battery"
ANY = {"If-Match": "*"}


def serving_supervisor(folder: Path | str, **environ: str) -> AbstractAsyncContextManager[str]:
    """Yields its address."""
    return serving(create_app, {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", **environ})


@asynccontextmanager
async def supervisor(folder: Path, **environ: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose addresses begin at the supervisor."""
    async with serving_supervisor(folder, **environ) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        yield http


def document(name: str = "hello", description: str = "Say hello.", text: str = "Say hello.", tags: str = "") -> str:
    metadata = f"metadata:\n  tags: {tags}\n" if tags else ""
    return f"---\nname: {name}\ndescription: {description}\n{metadata}---\n\n{text}\n"


def body(name: str = "hello", *, files: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """A skill as JSON; `visibility` and `team` go into the request, the rest into SKILL.md."""
    access = {key: more.pop(key) for key in ("visibility", "team") if key in more}
    return {"content": document(name, **more), "files": dict(files or {}), **access}


def zipped(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return buffer.getvalue()


def tarred(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def problem(answer: httpx.Response, status: int) -> str:
    """The sentence of a problem, whose form is checked."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    sent = answer.json()
    assert (sent["status"], bool(sent["title"])) == (status, True)
    assert sent["detail"].endswith((".", "?"))
    return str(sent["detail"])


async def names(http: httpx.AsyncClient, query: str = "", **options: Any) -> list[str]:
    answer = await http.get(f"/skills{query}", **options)
    assert answer.status_code == 200, answer.text
    return [skill["name"] for skill in answer.json()["skills"]]
