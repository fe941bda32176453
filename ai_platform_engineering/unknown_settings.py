"""Detects variables that are no settings: misspelt names, and names of options that do not exist.

Pure functions over the settings and the manifests. The process environment has many variables of other programs, so a
variable there is only reported if its prefix (the part before the first underscore) is that of a setting. In the `.env`
file every variable is reported that is not known to belong to another program.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.settings import DYNAMIC_VARIABLES, Settings, known_variables

_SIMILARITY: Final = 0.85
_ENABLE: Final = "ENABLE_"

# Prefixes of settings that no other program uses, so an unknown name with one of them was meant as a setting.
_OWN_PREFIXES: Final = frozenset(
    {
        "A2A",
        "DISTRIBUTED",
        "EVENT",
        "FETCH",
        "INGEST",
        "LANGGRAPH",
        "LLM",
        "MCP",
        "NETUTILS",
        "OFFLINE",
        "RAG",
        "RERANK",
    }
)

# Variables of libraries, Docker Compose and the build, which are often put into .env too.
_FOREIGN_VARIABLES: Final = re.compile(
    r"(AWS|AZURE|GOOGLE|GCLOUD|HF|LANGCHAIN|LANGSMITH|LC|NODE|NPM|OTEL|PIP|PYTHON|SSL|UV|XDG)_.*"
    r"|(ALL|FTP|HTTP|HTTPS|NO)_PROXY|(CURL|REQUESTS)_CA_BUNDLE|COMPOSE_.*|DOCKER_.*"
    r"|AGENTS|BASE|ENV_FILE|EXTRAS|PLATFORM_ENGINEER_IMAGE|REQUIRE_SERVICES|WITH_NODE|SERVICES_VENV"
    r"|PATH|HOME|USER|LANG|LC_ALL|TZ|TERM|SHELL|TMPDIR|PWD"
    r"|OPENAI_(API_BASE|API_TYPE|API_VERSION|BASE_URL|LOG|ORG_ID|ORGANIZATION|PROJECT_ID|PROXY|WEBHOOK_SECRET)"
    r"|ANTHROPIC_(AUTH_TOKEN|BASE_URL|LOG|API_URL)|GROQ_(API_BASE|BASE_URL|PROXY)|OLLAMA_(HOST|MODELS|KEEP_ALIVE)"
    r"|LITELLM_(LOG|MASTER_KEY|PROXY_\w+)|LANGFUSE_(BASE_URL|TRACING\w*|RELEASE|SAMPLE_RATE)"
    r"|MCP_TIMEOUT|MCP_TOOL_TIMEOUT|LANGGRAPH_(API_\w+|CLI_\w+|CLOUD_\w+|STUDIO_\w+|UI_\w+|SERVER_\w+|PORT)"
    # Set by `langgraph dev` in its own process.
    r"|LANGGRAPH_(ALLOW_BLOCKING|DISABLE_FILE_PERSISTENCE|HTTP|NO_VERSION_CHECK|RUNTIME_EDITION)"
)
# Kubernetes sets these variables for every service of a namespace.
_KUBERNETES_VARIABLES: Final = re.compile(r".*_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)")


def unknown_settings(settings: Settings, manifests: Mapping[str, AgentManifest]) -> list[str]:
    """One sentence for each variable that looks like a setting but is none, with the most similar setting."""
    known = {*known_variables(), *_agent_variables(settings, manifests)}
    prefixes = {_prefix(name) for name in known}
    return [
        sentence
        for name in sorted(settings.environ.keys() - known)
        if not _FOREIGN_VARIABLES.fullmatch(name)
        and (sentence := _sentence(name, known, prefixes, manifests, in_file=name in settings.file_variables))
    ]


def _sentence(
    name: str, known: Iterable[str], prefixes: Iterable[str], manifests: Iterable[str], *, in_file: bool
) -> str | None:
    if name.startswith(_ENABLE):
        agent = name.removeprefix(_ENABLE).lower()
        near = difflib.get_close_matches(agent, manifests, n=1)
        hint = f" Did you mean {_ENABLE}{near[0].upper()}?" if near else f" Known agents: {', '.join(manifests)}."
        return f"{name} is set, but there is no agent named {agent!r}.{hint}"
    if not in_file and (_KUBERNETES_VARIABLES.fullmatch(name) or _prefix(name) not in prefixes):
        return None
    if near := difflib.get_close_matches(name, known, n=1, cutoff=_SIMILARITY):
        return f"{name} is set, but there is no such setting. Did you mean {near[0]}?"
    if in_file or _prefix(name) in _OWN_PREFIXES:
        return f"{name} is set, but there is no such setting; docs/configuration.md lists them all."
    return None


def _agent_variables(settings: Settings, manifests: Mapping[str, AgentManifest]) -> Iterable[str]:
    """The variables of agents: those in their manifests, and the settings that exist per agent."""
    patterns = [variable.pattern for variable in DYNAMIC_VARIABLES]
    for name, manifest in manifests.items():
        yield from manifest.requires
        yield from manifest.variables()
        yield from (pattern.replace("<NAME>", name.upper()) for pattern in patterns)
    # <NAME>_AGENT_URL and <NAME>_AGENT_HOST define a remote agent, which may have any name.
    for variable in settings.environ:
        if match := re.fullmatch(r"([A-Z][A-Z0-9_]*)_AGENT_(URL|HOST)", variable):
            yield from (pattern.replace("<NAME>", match[1]) for pattern in patterns)


def _prefix(name: str) -> str:
    return name.partition("_")[0]
