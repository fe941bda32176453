"""The REST API, imported and built when the first request comes: most processes never get one."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase


class LazyRest:
    """An ASGI app to be mounted, for example at /rag. The knowledge base stays whoever's it is."""

    def __init__(self, knowledge_base: KnowledgeBase) -> None:
        self._knowledge_base = knowledge_base
        self._building = asyncio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._building:
            if self._app is None:
                self._app = await asyncio.to_thread(_build, self._knowledge_base)
        await self._app(scope, receive, send)


def _build(knowledge_base: KnowledgeBase) -> ASGIApp:
    from ai_platform_engineering.knowledge_bases.rag.rest.api import create_rest  # noqa: PLC0415

    return create_rest(knowledge_base)
