"""`GET /about`: the facts that the web page shows before the first question. Nothing in it is secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.installation import product_version
from ai_platform_engineering.llm.providers import is_offline, model_name
from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.policy.decisions import PrincipalPolicy

PATH: Final = "/about"
_MAX_SUGGESTIONS: Final = 8


def about_route(supervisor: PlatformEngineerDeepAgent, problem: Callable[[], str | None]) -> Route:
    """`problem` says why the server works only in part; None if it works."""

    async def get(request: Request) -> Response:
        policy = supervisor.policy.of(caller_in(request.scope.get("state")))
        return JSONResponse({**_facts(supervisor, policy), "degraded": problem()})

    return Route(PATH, get, methods=["GET"])


def _facts(supervisor: PlatformEngineerDeepAgent, policy: PrincipalPolicy) -> dict[str, Any]:
    settings, registry = supervisor.settings, supervisor.registry
    enabled = [entry for entry in registry.enabled() if policy.sees("agents", entry.name)]
    provider, name = model_name(settings)
    examples = {
        entry.name: entry.manifest.examples
        for entry in enabled
        if entry.manifest is not None and _works(supervisor, entry)
    }
    return {
        "version": product_version(),
        "model": {"provider": provider, "name": name, "offline": is_offline(settings)},
        "knowledge_base": settings.enable_rag,
        "memories": settings.langgraph_store_type is not None,
        "sandbox": registry.sandbox_on,
        "agent_titles": {entry.name: registry.title(entry.name) for entry in enabled},
        "suggestions": [
            {"agent": agent, "question": question} for agent, question in islice(_spread(examples), _MAX_SUGGESTIONS)
        ],
    }


def _works(supervisor: PlatformEngineerDeepAgent, entry: AgentEntry) -> bool:
    """Whether the agent can answer, as far as is known without asking it."""
    if entry.where == "in-process":
        return bool(supervisor.mcp.tools(entry.name))
    found = supervisor.registry.reachability.get(entry.name)
    return found is None or found.ok


def _spread(examples: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """The first example of each agent, then the second of each, and so on."""
    for row in zip_longest(*examples.values()):
        yield from ((agent, question) for agent, question in zip(examples, row, strict=True) if question is not None)
