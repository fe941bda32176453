"""The REST API of the knowledge base: search, documents, datasources, ingest. Only this package imports FastAPI.

`lazy_rest` is the entry point. It imports `api` at the first request, which keeps the start of a server fast.
"""

from __future__ import annotations

from starlette.types import ASGIApp

from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.policy.decisions import Policy
from ai_platform_engineering.utils.rest.asgi import LazyApp


def lazy_rest(knowledge_base: KnowledgeBase, policy: Policy | None = None) -> LazyApp:
    """An app to mount, for example at /rag. It does not close the knowledge base.

    `policy` says which datasources a caller sees; without it, a middleware around the app may.
    """

    def build() -> ASGIApp:
        from ai_platform_engineering.knowledge_bases.rag.caller_visibility import CallerVisibility  # noqa: PLC0415
        from ai_platform_engineering.knowledge_bases.rag.rest.api import create_rest  # noqa: PLC0415

        rest = create_rest(knowledge_base)
        return rest if policy is None else CallerVisibility(rest, policy)

    return LazyApp(build)
