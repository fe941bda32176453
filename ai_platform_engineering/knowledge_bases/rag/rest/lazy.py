"""The REST API for servers that serve other things too. FastAPI is imported by its first request."""

from __future__ import annotations

from starlette.types import ASGIApp

from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.utils.rest.lazy import LazyApp


def lazy_rest(knowledge_base: KnowledgeBase) -> LazyApp:
    """An app to be mounted, for example at /rag. It does not close the knowledge base."""

    def build() -> ASGIApp:
        from ai_platform_engineering.knowledge_bases.rag.rest.api import create_rest  # noqa: PLC0415

        return create_rest(knowledge_base)

    return LazyApp(build)
