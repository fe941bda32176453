"""Settings that nothing reads: misspelt names, and names of options that do not exist.

Pure functions over the settings and the manifests. The process environment is full of variables of other programs, so
a name counts there only if it shares its first word with one of our own settings; in the `.env` file every name counts
that is not known to belong to another program.
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

# First words of settings that no other program uses: an unknown name that begins with one was meant for us.
_OWN_WORDS: Final = frozenset(
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

# Variables of libraries, compose and the build that people also put into .env.
_OF_OTHERS: Final = re.compile(
    r"(AWS|AZURE|GOOGLE|GCLOUD|HF|LANGCHAIN|LANGSMITH|LC|NODE|NPM|OTEL|PIP|PYTHON|SSL|UV|XDG)_.*"
    r"|(ALL|FTP|HTTP|HTTPS|NO)_PROXY|(CURL|REQUESTS)_CA_BUNDLE|COMPOSE_.*|DOCKER_.*"
    r"|BASE|ENV_FILE|EXTRAS|PLATFORM_ENGINEER_IMAGE|REQUIRE_SERVICES|WITH_NODE|SERVICES_VENV"
    r"|PATH|HOME|USER|LANG|LC_ALL|TZ|TERM|SHELL|TMPDIR|PWD"
    r"|OPENAI_(API_BASE|API_TYPE|API_VERSION|BASE_URL|LOG|ORG_ID|ORGANIZATION|PROJECT_ID|PROXY|WEBHOOK_SECRET)"
    r"|ANTHROPIC_(AUTH_TOKEN|BASE_URL|LOG|API_URL)|GROQ_(API_BASE|BASE_URL|PROXY)|OLLAMA_(HOST|MODELS|KEEP_ALIVE)"
    r"|LITELLM_(LOG|MASTER_KEY|PROXY_\w+)|LANGFUSE_(BASE_URL|TRACING\w*|RELEASE|SAMPLE_RATE)"
    r"|MCP_TIMEOUT|MCP_TOOL_TIMEOUT|LANGGRAPH_(API_\w+|CLI_\w+|CLOUD_\w+|STUDIO_\w+|UI_\w+|SERVER_\w+|PORT)"
)
# Kubernetes sets such variables for every service of a namespace.
_OF_KUBERNETES: Final = re.compile(r".*_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)")


def unknown_settings(settings: Settings, manifests: Mapping[str, AgentManifest]) -> list[str]:
    """One sentence for each variable that looks like a setting and is none, with the nearest one that is."""
    known = {*known_variables(), *_of_agents(settings, manifests)}
    first_words = {_first_word(name) for name in known}
    return [
        sentence
        for name in sorted(settings.environ.keys() - known)
        if not _OF_OTHERS.fullmatch(name)
        and (sentence := _sentence(name, known, first_words, manifests, in_file=name in settings.file_variables))
    ]


def _sentence(
    name: str, known: Iterable[str], first_words: Iterable[str], manifests: Iterable[str], *, in_file: bool
) -> str | None:
    if name.startswith(_ENABLE):
        agent = name.removeprefix(_ENABLE).lower()
        near = difflib.get_close_matches(agent, manifests, n=1)
        hint = f" Did you mean {_ENABLE}{near[0].upper()}?" if near else f" Known agents: {', '.join(manifests)}."
        return f"{name} is set, but there is no agent named {agent!r}.{hint}"
    if not in_file and (_OF_KUBERNETES.fullmatch(name) or _first_word(name) not in first_words):
        return None
    if near := difflib.get_close_matches(name, known, n=1, cutoff=_SIMILARITY):
        return f"{name} is set, but there is no such setting. Did you mean {near[0]}?"
    if in_file or _first_word(name) in _OWN_WORDS:
        return f"{name} is set, but there is no such setting; docs/configuration.md lists them all."
    return None


def _of_agents(settings: Settings, manifests: Mapping[str, AgentManifest]) -> Iterable[str]:
    """What agents read: the variables of their manifests, and those that exist once per agent."""
    patterns = [variable.pattern for variable in DYNAMIC_VARIABLES]
    for name, manifest in manifests.items():
        yield from manifest.requires
        yield from manifest.variables()
        yield from (pattern.replace("<NAME>", name.upper()) for pattern in patterns)
    # An address of its own makes an agent of any name.
    for variable in settings.environ:
        if match := re.fullmatch(r"([A-Z][A-Z0-9_]*)_AGENT_(URL|HOST)", variable):
            yield from (pattern.replace("<NAME>", match[1]) for pattern in patterns)


def _first_word(name: str) -> str:
    return name.partition("_")[0]
