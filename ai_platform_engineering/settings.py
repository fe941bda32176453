"""Every setting of the product: name, type, default and meaning, read once and validated once.

The field `a2a_port` is the variable `A2A_PORT`. Whoever starts a process calls `load_settings` and passes the object
along; nothing else reads the environment. `python -m ai_platform_engineering.settings` prints docs/configuration.md.
"""

from __future__ import annotations

import io
import ipaddress
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le
from dotenv import dotenv_values
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ai_platform_engineering.utils.approvals.overrides import (
    ALLOWED_OVERRIDES,
    OVERRIDES_VARIABLE,
    Level,
    OverridesError,
    parse_overrides,
)

Group = Literal[
    "Server",
    "Placement",
    "Model",
    "Graph",
    "Approvals",
    "MCP",
    "Knowledge base",
    "Skills",
    "Sandbox",
    "Storage",
    "Limits",
    "Network tools",
    "Slack",
    "Feedback",
]
Provider = Literal[
    "offline",
    "openai",
    "azure-openai",
    "anthropic-claude",
    "aws-bedrock",
    "google-gemini",
    "gcp-vertexai",
    "groq",
    "ollama",
    "litellm",
]
EmbeddingsProvider = Literal[
    "none", "offline", "openai", "azure-openai", "aws-bedrock", "google-gemini", "gcp-vertexai", "ollama"
]

MASK: Final = "********"
MIN_KEY_LENGTH: Final = 16
"""Characters of a key that protects a server: a shorter one can be guessed."""
_SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|DATABASE_URL")
_FLAGS: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_FLAG_VALUES: Final = "true or false (also 1/0, yes/no, on/off)"


class SettingsError(ValueError):
    """The environment cannot be used: one sentence per problem, fit to be shown to a person."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a setting may be, in words, where its type and bounds do not say it."""

    text: str


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    try:
        return _FLAGS[str(value).lower()]
    except KeyError:
        raise ValueError("not a flag") from None


def _optional_flag(value: Any) -> bool | None:
    return None if value is None else _flag(value)


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _sandbox_choice(value: Any) -> Any:
    lowered = _lower(value)
    return str(_FLAGS[lowered]).lower() if lowered in _FLAGS else lowered


def _http_address(value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("not an http address")
    _ = parts.port  # raises ValueError when it is not a port number
    return value


def _postgres_address(value: SecretStr | None) -> SecretStr | None:
    if value is not None and urlsplit(value.get_secret_value()).scheme not in {"postgresql", "postgres"}:
        raise ValueError("not a Postgres address")
    return value


def _header_safe(value: SecretStr | None) -> SecretStr | None:
    # Secrets travel in HTTP headers, where a line break or a space would split them.
    if value is not None and not re.fullmatch(r"[\x21-\x7e]+", value.get_secret_value()):
        raise ValueError("not usable in a header")
    return value


def _long_enough(value: SecretStr | None) -> SecretStr | None:
    if value is not None and len(value.get_secret_value()) < MIN_KEY_LENGTH:
        raise ValueError("too short")
    return value


def _host_names(value: str) -> str:
    for name in filter(None, map(str.strip, value.split(","))):
        if name != "*" and not re.fullmatch(r"(\*?\.)?[A-Za-z0-9_.-]+|\[?[0-9A-Fa-f:.]+\]?", name):
            raise ValueError("not a host name")
        if re.fullmatch(r"[^\[\]:]+:[0-9]+", name):
            raise ValueError("a host name with a port")
    return value


def _existing_directory(value: Path | None) -> Path | None:
    if value is None:
        return None
    directory = value.expanduser()
    if not directory.is_dir():
        raise ValueError("no such directory")
    return directory


def _existing_file(value: Path | None) -> Path | None:
    if value is None:
        return None
    file = value.expanduser()
    if not file.is_file():
        raise ValueError("no such file")
    return file


def _slash_command(value: str) -> str:
    if not re.fullmatch(r"/[a-z0-9_-]{1,31}", value):
        raise ValueError("not a command")
    return value


def _not_a_file(value: Path) -> Path:
    path = value.expanduser()
    if path.exists() and not path.is_dir():
        raise ValueError("a file is in the way")
    return path


def _dns_server(value: str | None) -> str | None:
    if value is None:
        return None
    host, port = _split_port(value)
    ipaddress.ip_address(host)
    if port is not None and not 0 < int(port) < 65536:
        raise ValueError("not a port")
    return value


def _split_port(value: str) -> tuple[str, str | None]:
    """`10.0.0.2`, `10.0.0.2:5353`, `fd00::2` or `[fd00::2]:5353` as address and port."""
    if bracketed := re.fullmatch(r"\[([^\]]*)\](?::(\d+))?", value):
        return bracketed[1], bracketed[2]
    if value.count(":") == 1:
        host, port = value.split(":")
        return host, port
    return value, None


Flag = Annotated[bool, BeforeValidator(_flag), Allowed(_FLAG_VALUES)]
OptionalFlag = Annotated[bool | None, BeforeValidator(_optional_flag), Allowed(_FLAG_VALUES)]
OptionalAddress = Annotated[str | None, AfterValidator(_http_address), Allowed("an http:// or https:// address")]
Address = Annotated[str, AfterValidator(_http_address), Allowed("an http:// or https:// address")]
OptionalSecret = Annotated[
    SecretStr | None, AfterValidator(_header_safe), Allowed("printable ASCII text without spaces or line breaks")
]

OptionalKey = Annotated[
    SecretStr | None,
    AfterValidator(_header_safe),
    AfterValidator(_long_enough),
    Allowed(f"at least {MIN_KEY_LENGTH} characters of printable ASCII text without spaces or line breaks"),
]


def _setting(
    group: Group,
    meaning: str,
    default: Any = None,
    *,
    shown_default: str | None = None,
    also: str | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
) -> Any:
    """A field with its group and meaning; `also` is a second variable that is read when the first is not set."""
    return Field(
        default,
        description=meaning,
        json_schema_extra={"group": group, "shown_default": shown_default, "also": also},
        ge=ge,
        gt=gt,
        le=le,
    )


class Settings(BaseSettings):
    """All settings of one process. Frozen; made by `load_settings`."""

    model_config = SettingsConfigDict(
        alias_generator=str.upper, validate_by_name=True, frozen=True, extra="forbid", allow_inf_nan=False
    )

    _environ: Mapping[str, str] = PrivateAttr(default_factory=lambda: MappingProxyType({}))
    _file_variables: frozenset[str] = PrivateAttr(default=frozenset())

    a2a_host: str = _setting("Server", "Address the server listens on.", "127.0.0.1")
    a2a_port: int = _setting("Server", "Port the server listens on; 0 takes any free port.", 8000, ge=0, le=65535)
    a2a_public_url: OptionalAddress = _setting(
        "Server",
        "Address shown in the agent card, where callers reach the server from outside.",
        shown_default="from `A2A_HOST` and `A2A_PUBLIC_PORT`",
    )
    a2a_public_port: int | None = _setting(
        "Server",
        "Port in the agent card where callers use another one than `A2A_PORT`, as with a published container port.",
        shown_default="`A2A_PORT`",
        ge=1,
        le=65535,
    )
    allowed_hosts: Annotated[
        str, AfterValidator(_host_names), Allowed("host names without scheme and port, comma-separated")
    ] = _setting(
        "Server",
        "Names under which the server is called, beside loopback names, the host of `A2A_PUBLIC_URL` and the one it "
        "listens on: comma-separated, `.example.com` for a domain and all below it, `*` for any.",
        "",
    )
    allow_anonymous: Flag = _setting(
        "Server",
        "Lets a server that is open to the network start without a key and without an OAuth2 issuer.",
        False,
    )
    a2a_auth_shared_key: OptionalKey = _setting("Server", "When set, callers must send it as a bearer token.")
    a2a_agents_auth_key: OptionalKey = _setting(
        "Server",
        "Key of the servers behind the supervisor, remote agents and a knowledge base: the supervisor sends it to "
        "them, and they demand it. It also proves to an agent what the supervisor delegates.",
    )
    a2a_agents_share_key: Flag = _setting(
        "Server",
        "Lets the supervisor send `A2A_AUTH_SHARED_KEY` to the servers behind it where `A2A_AGENTS_AUTH_KEY` is not "
        "set. Every caller of the supervisor can then call them, too.",
        False,
    )
    a2a_oauth_issuer: OptionalAddress = _setting(
        "Server",
        "When set, callers may send an access token of this OAuth2 issuer instead of the shared key, and must send one "
        "of the two.",
    )
    a2a_oauth_audience: str | None = _setting(
        "Server", "The audience that access tokens must be made for.", shown_default="any"
    )
    a2a_oauth_jwks_url: OptionalAddress = _setting(
        "Server", "Where the keys of the issuer are.", shown_default="as the issuer's metadata says"
    )
    a2a_oauth_grant_url: OptionalAddress = _setting(
        "Server",
        "Token endpoint where clients of the supervisor (Slack, `chat --url`) get their access token.",
    )
    a2a_oauth_client_id: str | None = _setting("Server", "Id with which a client gets its access token.")
    a2a_oauth_client_secret: OptionalSecret = _setting("Server", "Secret with which a client gets its access token.")
    a2a_oauth_scope: str | None = _setting("Server", "Scope that a client asks for.", shown_default="none")
    user_signing_key: OptionalKey = _setting(
        "Server",
        "With which clients sign who asks; the supervisor believes no other name.",
        shown_default="`A2A_AUTH_SHARED_KEY`",
    )
    allowed_origins: str = _setting(
        "Server", "Web pages of other sites that may call, by origin, comma-separated: `https://portal.example`.", ""
    )
    settings_overrides: str = _setting(
        "Server",
        "Lines of `NAME=VALUE` that override other settings; a line without a value is ignored. The compose files pass "
        "the shell's settings on in it, because an empty variable would hide a value of the `.env` file.",
        "",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = _setting(
        "Server", "How much is logged.", "info"
    )
    log_format: Annotated[Literal["text", "json"], BeforeValidator(_lower)] = _setting(
        "Server", "Log lines for people (`text`) or one JSON object per line (`json`).", "text"
    )

    distributed_agents: str = _setting(
        "Placement",
        "Comma-separated names of the agents that run remotely, or `all`; every other agent runs in-process.",
        "",
    )
    distributed_mode: Flag = _setting(
        "Placement", "`true` is `DISTRIBUTED_AGENTS=all`; ignored when `DISTRIBUTED_AGENTS` is set.", False
    )
    agents_dir: Annotated[
        Path | None, AfterValidator(_existing_directory), Allowed("the path of an existing directory")
    ] = _setting("Placement", "Directory with manifests of your own agents, beside the built-in ones.")
    workflows_dir: Annotated[
        Path | None, AfterValidator(_existing_directory), Allowed("the path of an existing directory")
    ] = _setting("Placement", "Directory with workflows of your own, beside the built-in ones.")
    skip_agent_connectivity_check: OptionalFlag = _setting(
        "Placement",
        "`true` never checks at start whether remote agents can be reached, `false` always does.",
        shown_default="checked when any agent is remote",
    )
    agent_connectivity_timeout: float = _setting(
        "Placement", "Seconds that all checks at start may take together.", 5.0, gt=0, le=60
    )
    agent_connect_timeout: float = _setting(
        "Placement", "Seconds to reach a remote agent when it is first used.", 4.0, gt=0, le=5
    )
    agent_recheck_interval: float = _setting(
        "Placement",
        "Seconds between checks of the remote agents: whether they answer, and what their cards say.",
        10.0,
        gt=0,
        le=3600,
    )

    llm_provider: Annotated[Provider | None, BeforeValidator(_lower)] = _setting(
        "Model",
        "Which chat model answers. `offline` needs no key and no network.",
        shown_default="`openai` or `anthropic-claude` when their key is set, else `offline`",
    )
    model_name: str | None = _setting("Model", "Model to use where the provider's own variable is not set.")
    llm_temperature: float | None = _setting(
        "Model", "Sampling temperature.", shown_default="the provider's", ge=0, le=2
    )
    llm_timeout: float = _setting(
        "Model",
        "Seconds one model call may take. An answer that has begun is cut there and kept.",
        300.0,
        gt=0,
        le=3600,
    )
    llm_idle_timeout: float = _setting(
        "Model", "Seconds without any output after which a streamed model call has failed.", 120.0, gt=0, le=3600
    )
    llm_always_stream: Flag = _setting(
        "Model",
        "Streams every call of an OpenAI model, also of agents whose text is read when it is complete. For gateways "
        "that close a connection which is silent for as long as an answer takes.",
        False,
    )
    llm_max_retries: int = _setting(
        "Model",
        "How often a model call is repeated after a rate limit, an error of the provider or a lost connection.",
        2,
        ge=0,
        le=10,
    )
    llm_max_retry_wait: float = _setting(
        "Model",
        "Longest wait for a retry, in seconds. A provider that asks for a longer one fails the call.",
        60.0,
        ge=0,
        le=3600,
    )
    llm_max_output: int | None = _setting(
        "Model", "Tokens a model may write in one call.", shown_default="the provider's", ge=1
    )
    llm_max_output_chars: int = _setting(
        "Model", "Characters a model may write in one call. The answer is cut there and kept.", 500_000, ge=1
    )
    openai_endpoint: OptionalAddress = _setting(
        "Model", "Base address of OpenAI or of any server that speaks its API.", shown_default="OpenAI's own"
    )
    openai_api_key: OptionalSecret = _setting("Model", "Key for OpenAI or the server at `OPENAI_ENDPOINT`.")
    openai_model_name: str | None = _setting("Model", "Model at OpenAI.")
    azure_openai_endpoint: OptionalAddress = _setting("Model", "Address of the Azure OpenAI resource.")
    azure_openai_api_key: OptionalSecret = _setting("Model", "Key for Azure OpenAI.")
    azure_openai_deployment: str | None = _setting("Model", "Name of the Azure OpenAI deployment.")
    azure_openai_api_version: str | None = _setting("Model", "API version of Azure OpenAI.")
    anthropic_api_key: OptionalSecret = _setting("Model", "Key for Anthropic.")
    anthropic_model_name: str | None = _setting("Model", "Model at Anthropic.")
    aws_region: str | None = _setting("Model", "AWS region of Bedrock.", also="AWS_DEFAULT_REGION")
    aws_bedrock_model_id: str | None = _setting("Model", "Model or inference profile at Bedrock.")
    google_api_key: OptionalSecret = _setting("Model", "Key for Google Gemini.")
    google_gemini_model_name: str | None = _setting("Model", "Model at Google Gemini.")
    google_cloud_project: str | None = _setting("Model", "Google Cloud project of Vertex AI.")
    google_cloud_location: str | None = _setting("Model", "Google Cloud location of Vertex AI.")
    vertexai_model_name: str | None = _setting("Model", "Model at Vertex AI.")
    groq_api_key: OptionalSecret = _setting("Model", "Key for Groq.")
    groq_model_name: str | None = _setting("Model", "Model at Groq.")
    ollama_base_url: Address = _setting("Model", "Address of the Ollama server.", "http://127.0.0.1:11434")
    ollama_model_name: str | None = _setting("Model", "Model at Ollama.")
    litellm_model_name: str | None = _setting("Model", "Model as LiteLLM names it, for example `openai/gpt-5`.")
    litellm_api_base: OptionalAddress = _setting("Model", "Address of a LiteLLM proxy.")
    litellm_api_key: OptionalSecret = _setting("Model", "Key for the LiteLLM proxy or the provider behind it.")
    offline_model_delay: float | None = _setting(
        "Model",
        "Seconds the offline model waits between all words, those inside agents too.",
        None,
        ge=0,
        le=5,
        shown_default="no delay inside agents, and answers complete within a second",
    )

    langgraph_recursion_limit: int = _setting(
        "Graph", "Steps the supervisor, and each agent, may take before it must answer with what it has.", 500, ge=4
    )
    langgraph_dev: Flag = _setting("Graph", "Leaves the checkpointer to LangGraph Studio.", False)
    tool_timeout: float = _setting("Graph", "Seconds one tool call may take.", 120.0, gt=0, le=3600)
    text_coalesce_ms: int = _setting(
        "Graph", "Milliseconds for which pieces of streamed text are gathered into one event.", 25, ge=0, le=1000
    )
    tool_result_max_chars: int = _setting(
        "Graph", "Characters of a tool result that go into a prompt at once; the model can read on.", 20_000, ge=100
    )

    require_approval: Annotated[Literal["never", "destructive", "writes"] | None, BeforeValidator(_lower)] = _setting(
        "Approvals",
        "Tool calls that wait for a person: none, those that destroy things, or all that may change something.",
        shown_default="`writes` on real backends, `destructive` on the sandbox",
    )
    require_approval_overrides: Annotated[str, Allowed(ALLOWED_OVERRIDES)] = _setting(
        "Approvals",
        "Other levels for some agents and tools: `jira=never, argocd.delete_application=always`.",
        "",
    )

    mcp_start_timeout: float = _setting(
        "MCP", "Seconds the MCP servers have to start; late ones join when they are ready.", 10.0, gt=0, le=600
    )
    mcp_download_timeout: float = _setting(
        "MCP", "Seconds that `npx` or `uvx` may take to download a server that is not in its cache.", 1800.0, gt=0
    )
    mcp_restart_backoff: float = _setting(
        "MCP", "Seconds before a server that died is started again; doubles with each failure.", 0.5, gt=0, le=60
    )
    mcp_restart_backoff_max: float = _setting("MCP", "Longest wait, in seconds, between two starts.", 30.0, gt=0)

    enable_rag: Flag = _setting("Knowledge base", "Whether the supervisor has a knowledge base to search.", True)
    rag_server_url: OptionalAddress = _setting(
        "Knowledge base",
        "MCP address of a knowledge base server (`platform-engineer rag serve`), for example "
        "`http://127.0.0.1:8010/mcp`.",
        shown_default="the knowledge base runs inside the supervisor",
    )
    rag_database_url: Annotated[
        SecretStr | None, AfterValidator(_postgres_address), Allowed("a postgresql:// address")
    ] = _setting(
        "Knowledge base",
        "Postgres with pgvector in which the knowledge base is kept.",
        shown_default="a file in `DATA_DIR`",
    )
    rag_product_docs: Flag = _setting(
        "Knowledge base", "Whether the documentation of this product is in the knowledge base.", True
    )
    search_max_calls: int = _setting("Knowledge base", "Searches per question.", 5, ge=1)
    fetch_document_max_calls: int = _setting(
        "Knowledge base", "Documents that are read per question, and web pages.", 10, ge=1
    )
    rag_max_search_results: int = _setting("Knowledge base", "Results of one search.", 3, ge=1, le=50)
    rag_max_output_chars: int = _setting(
        "Knowledge base", "Characters of one result that go to the model; the rest is left out.", 10_000, ge=100
    )
    embeddings_provider: Annotated[EmbeddingsProvider | None, BeforeValidator(_lower)] = _setting(
        "Knowledge base",
        "What turns text into vectors. `offline` needs no key and no network, `none` leaves keyword search alone.",
        shown_default="`offline` where the `embeddings` extra is installed, else `none`",
    )
    embeddings_model_name: str | None = _setting(
        "Knowledge base", "Embedding model at the provider.", shown_default="a common one of the provider"
    )
    rerank_url: OptionalAddress = _setting(
        "Knowledge base", "Address of a rerank API (Cohere, Jina, vLLM and others serve it) that orders results."
    )
    rerank_model_name: str | None = _setting("Knowledge base", "Model at `RERANK_URL`.")
    rerank_api_key: OptionalSecret = _setting("Knowledge base", "Key for `RERANK_URL`.")
    fetch_url_allow_private: Flag = _setting(
        "Knowledge base", "Lets web pages be read from private and loopback addresses.", False
    )
    fetch_url_allowed_hosts: str = _setting(
        "Knowledge base",
        "Hosts that web pages may be read from, comma-separated; `*.example.com` for all below one.",
        "",
        shown_default="every public host",
    )
    fetch_url_max_bytes: int = _setting(
        "Knowledge base", "Size of the largest web page that is read.", 5_000_000, ge=1024
    )
    fetch_url_timeout: float = _setting("Knowledge base", "Seconds one web page may take.", 20.0, gt=0, le=600)
    ingest_max_pages: int = _setting("Knowledge base", "Pages that one `ingest` of a site reads at most.", 1000, ge=1)
    ingest_pages_per_second: float = _setting(
        "Knowledge base", "How fast `ingest` reads the pages of one site.", 5.0, gt=0, le=1000
    )

    enable_skills: Flag = _setting("Skills", "Whether the supervisor and its agents use skills.", True)
    skills_dir: Annotated[
        Path | None, AfterValidator(_existing_directory), Allowed("the path of an existing directory")
    ] = _setting("Skills", "Directory with one folder for each skill; changes are seen while the server runs.")
    skills_git: str = _setting(
        "Skills",
        "Git repositories with skills, comma-separated: `address@commit`, or `address@branch`, which is read again by "
        "`platform-engineer skills refresh`. `#folder` at the end takes the skills below one folder.",
        "",
    )
    skills_git_token: OptionalSecret = _setting("Skills", "Token for the https:// addresses of `SKILLS_GIT`.")
    skills_database_url: Annotated[
        SecretStr | None, AfterValidator(_postgres_address), Allowed("a postgresql:// address")
    ] = _setting(
        "Skills",
        "Postgres in which skills are kept that were created through the API.",
        shown_default="a file in `DATA_DIR`",
    )
    skills_admins: str = _setting(
        "Skills",
        "Subjects of access tokens that may change skills that are not their own, comma-separated. The holder of the "
        "key always may.",
        "",
    )
    skills_crawl_hosts: str = _setting(
        "Skills",
        "Hosts whose Git repositories `POST /skill-hubs/crawl` may read, comma-separated.",
        "github.com,gitlab.com",
    )
    skills_prompt_max_chars: int = _setting(
        "Skills",
        "Characters of the prompt for the list of skills. The model searches for skills where the list is longer.",
        7_000,
        ge=200,
        le=7_000,
    )

    sandbox: Annotated[Literal["auto", "true", "false"], BeforeValidator(_sandbox_choice)] = _setting(
        "Sandbox", "Simulated backends. `auto`: on while no agent has its real backend configured.", "auto"
    )
    data_dir: Annotated[Path, AfterValidator(_not_a_file), Allowed("the path of a directory")] = _setting(
        "Storage",
        "Where the product keeps its files.",
        Path("~/.local/share/platform-engineer"),
        shown_default="`~/.local/share/platform-engineer`, or below `XDG_DATA_HOME`",
    )
    event_log: Annotated[Literal["sqlite", "memory"], BeforeValidator(_lower)] = _setting(
        "Storage",
        "Where tasks and their events are kept: a file in `DATA_DIR`, or memory until the server stops.",
        "sqlite",
    )
    event_log_max_tasks: int = _setting(
        "Storage", "Ended tasks that are kept; the oldest go first, with their conversations.", 10_000, ge=1
    )
    event_log_max_age_days: float = _setting(
        "Storage", "Days for which ended tasks are kept; 0 keeps them for ever.", 30.0, ge=0, le=36_500
    )
    conversations: Annotated[Literal["sqlite", "memory"], BeforeValidator(_lower)] = _setting(
        "Storage",
        "Where the supervisor remembers conversations, and an agent's own server those that wait for a person: a file "
        "in `DATA_DIR`, or memory until it stops.",
        "sqlite",
    )

    max_request_bytes: int = _setting("Limits", "Size of the largest request that is read.", 1_000_000, ge=1024)
    form_expiry_hours: float = _setting(
        "Limits",
        "Hours after which a task ends whose form nobody answers; 0 lets it wait for ever.",
        168.0,
        ge=0,
        le=87_600,
    )
    push_allow_private: Flag = _setting(
        "Limits", "Lets push notifications go to private and loopback addresses.", False
    )

    netutils_allow_private: Flag = _setting(
        "Network tools", "Lets the network tools reach private and loopback addresses.", False
    )
    netutils_timeout: float = _setting("Network tools", "Seconds one lookup or connection may take.", 5.0, gt=0, le=60)
    netutils_dns_server: Annotated[
        str | None, AfterValidator(_dns_server), Allowed("an IP address, with :port where it is not 53")
    ] = _setting("Network tools", "DNS server to ask.", shown_default="the system's")

    supervisor_url: Address = _setting("Slack", "Where the Slack bot finds the supervisor.", "http://127.0.0.1:8000")
    supervisor_patience: float = _setting(
        "Slack",
        "Seconds that the Slack bot waits for a supervisor it cannot reach, which may be restarting, before it tells "
        "who asked.",
        60.0,
        ge=0,
        le=3600,
    )
    slack_bot_token: OptionalSecret = _setting("Slack", "Bot token of the Slack app (`xoxb-...`).")
    slack_app_token: OptionalSecret = _setting(
        "Slack", "App-level token (`xapp-...`); with it the bot connects to Slack (Socket Mode) and needs no address."
    )
    slack_signing_secret: OptionalSecret = _setting(
        "Slack",
        "Signing secret of the Slack app; with it, and without `SLACK_APP_TOKEN`, Slack calls the bot over HTTP.",
    )
    slack_host: str = _setting(
        "Slack", "Address the Slack bot listens on, for Slack and for health checks.", "127.0.0.1"
    )
    slack_port: int = _setting("Slack", "Port the Slack bot listens on; 0 takes any free port.", 3000, ge=0, le=65535)
    slack_channels_file: Annotated[
        Path | None, AfterValidator(_existing_file), Allowed("the path of an existing file")
    ] = _setting(
        "Slack",
        "YAML file that says in which channels the bot answers, and how.",
        shown_default="every channel it is invited to, when it is mentioned",
    )
    slack_command: Annotated[str, AfterValidator(_slash_command), Allowed("a word that begins with /")] = _setting(
        "Slack", "The slash command of the Slack app.", "/platform"
    )
    slack_sessions: Annotated[Literal["sqlite", "memory"], BeforeValidator(_lower)] = _setting(
        "Slack",
        "Where the bot keeps its threads and what it has not delivered yet: a file in `DATA_DIR`, or memory.",
        "sqlite",
    )
    slack_api_url: Address = _setting("Slack", "Address of Slack's Web API.", "https://slack.com/api/")

    langfuse_host: OptionalAddress = _setting("Feedback", "Langfuse server that people's feedback is sent on to.")
    langfuse_public_key: OptionalSecret = _setting("Feedback", "Public key of the Langfuse project.")
    langfuse_secret_key: OptionalSecret = _setting("Feedback", "Secret key of the Langfuse project.")

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment as it was at start, without empty values: the source of per-agent variables."""
        return self._environ

    def approval_level(self, *, sandboxed: bool) -> Level:
        """The level of an agent about which nothing closer is said. The sandbox can be reset, so it asks less."""
        return self.require_approval or ("destructive" if sandboxed else "writes")

    def describe_approval(self, *, sandbox_on: bool) -> str:
        """The level for all agents, in words where it depends on the backend."""
        real, sandbox = self.approval_level(sandboxed=False), self.approval_level(sandboxed=True)
        return f"{sandbox} on the sandbox, {real} on real backends" if sandbox_on and sandbox != real else real

    @property
    def file_variables(self) -> frozenset[str]:
        """The variables that the `.env` file names."""
        return self._file_variables

    @property
    def public_url(self) -> str:
        """Where callers reach the server."""
        if self.a2a_public_url:
            return self.a2a_public_url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.a2a_host, self.a2a_host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.a2a_public_port or self.a2a_port}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # load_settings reads file and environment into one snapshot, which per-agent variables are read from as well.
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class DynamicVariable:
    """Variables that exist once per agent; `<NAME>` is the agent's name in capitals."""

    pattern: str
    values: str
    default: str
    meaning: str


DYNAMIC_VARIABLES: Final = (
    DynamicVariable("ENABLE_<NAME>", _FLAG_VALUES, "on when the agent is configured", "Switches the agent on or off."),
    DynamicVariable(
        "<NAME>_AGENT_URL",
        "an http:// or https:// address",
        "`http://agent-<name>:8000`",
        "Where the agent runs when it is remote. A name without a manifest becomes a remote agent.",
    ),
    DynamicVariable("<NAME>_AGENT_HOST", "text", "`agent-<name>`", "Host of the agent when no URL is given."),
    DynamicVariable(
        "<NAME>_AGENT_PORT", "a whole number from 1 to 65535", "`8000`", "Port of the agent when no URL is given."
    ),
    DynamicVariable("<NAME>_LLM_PROVIDER", "as `LLM_PROVIDER`", "`LLM_PROVIDER`", "Which chat model this agent uses."),
    DynamicVariable("<NAME>_MODEL_NAME", "text", "the provider's model", "Model this agent uses."),
)

# Every entry must be met, each by any one of its variables.
PROVIDER_REQUIREMENTS: Final[Mapping[Provider, tuple[tuple[str, ...], ...]]] = MappingProxyType(
    {
        "offline": (),
        "openai": (("OPENAI_API_KEY", "OPENAI_ENDPOINT"),),
        "azure-openai": (("AZURE_OPENAI_ENDPOINT",), ("AZURE_OPENAI_API_KEY",), ("AZURE_OPENAI_DEPLOYMENT",)),
        "anthropic-claude": (("ANTHROPIC_API_KEY",),),
        "aws-bedrock": (("AWS_REGION",),),
        "google-gemini": (("GOOGLE_API_KEY",),),
        "gcp-vertexai": (("GOOGLE_CLOUD_PROJECT",),),
        "groq": (("GROQ_API_KEY",),),
        "ollama": (("OLLAMA_MODEL_NAME", "MODEL_NAME"),),
        "litellm": (("LITELLM_MODEL_NAME", "MODEL_NAME"),),
    }
)


def load_settings(environ: Mapping[str, str] | None = None, env_file: Path | None = Path(".env")) -> Settings:
    """Settings from `env_file` overlaid by `environ` (the process's, if not given).

    An empty value counts as not set; one in `environ` also hides the file's, one in `SETTINGS_OVERRIDES` hides nothing.
    """
    stored = _stored(env_file)
    snapshot = _snapshot(stored, os.environ if environ is None else environ)
    values: dict[str, Any] = {name: snapshot[name] for name in _fields_by_variable() if name in snapshot}
    for name, info in _fields_by_variable().items():
        also = _extra(info)["also"]
        if name not in values and also in snapshot:
            values[name] = snapshot[also]
    if "DATA_DIR" not in values and Path(snapshot.get("XDG_DATA_HOME", "")).is_absolute():
        values["DATA_DIR"] = Path(snapshot["XDG_DATA_HOME"]) / "platform-engineer"
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError(*_sentences(error, snapshot)) from None
    settings._environ = snapshot
    settings._file_variables = frozenset(stored)
    if problems := _contradictions(settings):
        raise SettingsError(*problems)
    return settings


def parse_flag(variable: str, value: str) -> bool:
    """The value of a variable that is true or false, for variables that exist once per agent."""
    try:
        return _flag(value.strip())
    except ValueError:
        raise SettingsError(wrong_value(variable, value, _FLAG_VALUES)) from None


def wrong_value(variable: str, value: str, allowed: str) -> str:
    """The sentence for a value that cannot be used."""
    return f"{variable}={_shown(variable, value)} cannot be used: it must be {allowed}."


def provider_problem(settings: Settings, provider: Provider, chosen_by: str = "LLM_PROVIDER") -> str | None:
    """What is missing before `provider` can be used, as a sentence; `chosen_by` is the variable that names it."""
    missing = [
        " or ".join(alternatives)
        for alternatives in PROVIDER_REQUIREMENTS[provider]
        if not any(getattr(settings, name.lower()) for name in alternatives)
    ]
    if not missing:
        return None
    return f"{chosen_by}={provider} needs {' and '.join(missing)}: set it, or choose another provider."


def configuration_page() -> str:
    """docs/configuration.md: every variable with what it may be, its default and its meaning."""
    lines = [
        "# Configuration",
        "",
        "Settings are environment variables. A file named `.env` in the working directory is read first and the",
        "process environment overrides it. An empty value counts as not set. They are read once, at start; a value",
        "that cannot be used stops the start with a sentence that says what is allowed.",
        "",
    ]
    for group in get_args(Group):
        rows = [
            (f"`{name}`", _allowed(info), _default(info), _meaning(info))
            for name, info in _fields_by_variable().items()
            if _extra(info)["group"] == group
        ]
        lines += [f"## {group}", "", *_table(rows), ""]
    rows = [(f"`{row.pattern}`", row.values, row.default, row.meaning) for row in DYNAMIC_VARIABLES]
    lines += [
        "## Per agent",
        "",
        "`<NAME>` is the name of the agent in capitals, for example `ENABLE_ARGOCD`. Each agent also reads the",
        "variables that its manifest lists under `requires`.",
        "",
        *_table(rows),
    ]
    return "\n".join(lines) + "\n"


def known_variables() -> frozenset[str]:
    """The name of every setting, also the second names."""
    second_names = (_extra(info)["also"] for info in _fields_by_variable().values())
    return frozenset({*_fields_by_variable(), *filter(None, second_names)})


def _stored(env_file: Path | None) -> dict[str, str | None]:
    if env_file is None or not env_file.is_file():
        return {}
    try:
        # Values are taken literally: a "$" in a password is a "$".
        return dotenv_values(env_file, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{env_file} cannot be read as UTF-8 text: {type(error).__name__}.") from None


def _snapshot(stored: Mapping[str, str | None], environ: Mapping[str, str]) -> Mapping[str, str]:
    overrides = dotenv_values(stream=io.StringIO(environ.get("SETTINGS_OVERRIDES", "")), interpolate=False)
    return MappingProxyType(_without_blanks({**stored, **environ}) | _without_blanks(overrides))


def _without_blanks(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value.strip() for name, value in values.items() if value and value.strip()}


def _fields_by_variable() -> dict[str, FieldInfo]:
    return {name.upper(): info for name, info in Settings.model_fields.items()}


def _sentences(error: ValidationError, snapshot: Mapping[str, str]) -> list[str]:
    fields = _fields_by_variable()
    wrong = dict.fromkeys(str(detail["loc"][0]) for detail in error.errors(include_input=False))
    sentences = []
    for name in wrong:
        source = name if name in snapshot else _extra(fields[name])["also"]
        sentences.append(wrong_value(source, snapshot[source], _allowed(fields[name])))
    return sentences


def _contradictions(settings: Settings) -> list[str]:
    problems = []
    if settings.llm_provider and (problem := provider_problem(settings, settings.llm_provider)):
        problems.append(problem)
    if settings.mcp_restart_backoff_max < settings.mcp_restart_backoff:
        problems.append(
            wrong_value(
                "MCP_RESTART_BACKOFF_MAX",
                f"{settings.mcp_restart_backoff_max:g}",
                f"at least MCP_RESTART_BACKOFF, which is {settings.mcp_restart_backoff:g}",
            )
        )
    try:
        parse_overrides(settings.require_approval_overrides)
    except OverridesError as error:
        problems.append(wrong_value(OVERRIDES_VARIABLE, error.override, error.allowed))
    return problems


def _shown(variable: str, value: str) -> str:
    if _SECRET_NAME.search(variable):
        return MASK
    without_credentials = re.sub(r"(?<=//)[^/@\s]*@", f"{MASK}@", value)
    return without_credentials if len(without_credentials) <= 200 else f"{without_credentials[:200]}..."


def _extra(info: FieldInfo) -> dict[str, Any]:
    extra = info.json_schema_extra
    if not isinstance(extra, dict):
        raise TypeError(f"{info!r} was not made by _setting()")
    return extra


def _allowed(info: FieldInfo) -> str:
    for item in info.metadata:
        if isinstance(item, Allowed):
            return item.text
    kinds = [kind for kind in get_args(info.annotation) or (info.annotation,) if kind is not type(None)]
    choices = [choice for kind in kinds for choice in (get_args(kind) or (kind,)) if isinstance(choice, str)]
    if choices:
        return f"one of {', '.join(choices)}"
    if int in kinds or float in kinds:
        return ("a whole number" if int in kinds else "a number") + _bounds(info)
    return "text"


def _bounds(info: FieldInfo) -> str:
    lowest = next((f"{item.ge:g}" for item in info.metadata if isinstance(item, Ge)), None)
    above = next((f"{item.gt:g}" for item in info.metadata if isinstance(item, Gt)), None)
    highest = next((f"{item.le:g}" for item in info.metadata if isinstance(item, Le)), None)
    match lowest, above, highest:
        case str(), _, str():
            return f" from {lowest} to {highest}"
        case str(), _, None:
            return f" of at least {lowest}"
        case None, str(), str():
            return f" above {above} and at most {highest}"
        case None, str(), None:
            return f" above {above}"
        case _:
            return ""


def _default(info: FieldInfo) -> str:
    if shown := _extra(info)["shown_default"]:
        return str(shown)
    match info.default:
        case None | "":
            return "not set"
        case bool(value):
            return f"`{str(value).lower()}`"
        case float(value):
            return f"`{value:g}`"
        case value:
            return f"`{value}`"


def _meaning(info: FieldInfo) -> str:
    also = _extra(info)["also"]
    return f"{info.description} `{also}` is read when this is not set." if also else str(info.description)


def _table(rows: list[tuple[str, str, str, str]]) -> list[str]:
    return [
        "| Variable | Allowed | Default | Meaning |",
        "|---|---|---|---|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows),
    ]


if __name__ == "__main__":
    sys.stdout.write(configuration_page())
