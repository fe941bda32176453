"""Run in a process of its own: serves the supervisor, asks it, and prints when FastAPI was imported."""

from __future__ import annotations

import asyncio
import json
import sys

import httpx

from tests.servers import calling
from tests.skills_middleware.rest_servers import serving_supervisor


async def main(folder: str) -> None:
    seen = {}
    async with (
        serving_supervisor(folder) as url,
        httpx.AsyncClient(base_url=url, timeout=30) as http,
        calling(url) as caller,
    ):
        codes = [(await http.get(path)).status_code for path in ("/healthz", "/nothing", "/workflows")]
        events = await caller.ask("show argocd version")
        seen["before"] = [*codes, type(events[-1]).__name__, "fastapi" in sys.modules]
        seen["after"] = [(await http.get("/skills")).status_code, "fastapi" in sys.modules]
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
