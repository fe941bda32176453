"""Every setting: name, type, default and meaning. The field `a2a_port` is the variable `A2A_PORT`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PrivateAttr, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ai_platform_engineering.settings.approval_overrides import ALLOWED_OVERRIDES, Level
from ai_platform_engineering.settings.fields import (
    Address,
    Allowed,
    EmbeddingsProvider,
    Flag,
    OptionalAddress,
    OptionalFlag,
    OptionalKey,
    OptionalSecret,
    Provider,
    dns_server,
    existing_directory,
    existing_file,
    host_names,
    lower,
    not_a_file,
    postgres_address,
    sandbox_choice,
    setting,
    slash_command,
)


class Settings(BaseSettings):
    """All settings of one process. Frozen; made by `load_settings`."""

    model_config = SettingsConfigDict(
        alias_generator=str.upper, validate_by_name=True, frozen=True, extra="forbid", allow_inf_nan=False
    )

    _environ: Mapping[str, str] = PrivateAttr(default_factory=lambda: MappingProxyType({}))
    _file_variables: frozenset[str] = PrivateAttr(default=frozenset())

    a2a_host: str = setting("Server", "Address the server listens on.", "127.0.0.1")
    a2a_port: int = setting("Server", "Port the server listens on; 0 takes any free port.", 8000, ge=0, le=65535)
    a2a_public_url: OptionalAddress = setting(
        "Server",
        "Address shown in the agent card, where callers reach the server from outside.",
        shown_default="from `A2A_HOST` and `A2A_PUBLIC_PORT`",
    )
    a2a_public_port: int | None = setting(
        "Server",
        "Port in the agent card where callers use another one than `A2A_PORT`, as with a published container port.",
        shown_default="`A2A_PORT`",
        ge=1,
        le=65535,
    )
    allowed_hosts: Annotated[
        str, AfterValidator(host_names), Allowed("host names without scheme and port, comma-separated")
    ] = setting(
        "Server",
        "Names under which the server is called, beside loopback names, the host of `A2A_PUBLIC_URL` and the one it "
        "listens on: comma-separated, `.example.com` for a domain and all below it, `*` for any.",
        "",
    )
    allow_anonymous: Flag = setting(
        "Server",
        "Lets a server that is open to the network start without a key and without an OAuth2 issuer.",
        False,
    )
    a2a_auth_shared_key: OptionalKey = setting("Server", "When set, callers must send it as a bearer token.")
    a2a_agents_auth_key: OptionalKey = setting(
        "Server",
        "Key of the servers behind the supervisor, remote agents and a knowledge base: the supervisor sends it to "
        "them, and they demand it. It also proves to an agent what the supervisor delegates.",
    )
    a2a_agents_share_key: Flag = setting(
        "Server",
        "Lets the supervisor send `A2A_AUTH_SHARED_KEY` to the servers behind it where `A2A_AGENTS_AUTH_KEY` is not "
        "set. Every caller of the supervisor can then call them, too.",
        False,
    )
    a2a_oauth_issuer: OptionalAddress = setting(
        "Server",
        "When set, callers may send an access token of this OAuth2 issuer instead of the shared key, and must send one "
        "of the two.",
    )
    a2a_oauth_audience: str | None = setting(
        "Server", "The audience that access tokens must be made for.", shown_default="any"
    )
    a2a_oauth_jwks_url: OptionalAddress = setting(
        "Server", "Where the keys of the issuer are.", shown_default="as the issuer's metadata says"
    )
    a2a_oauth_grant_url: OptionalAddress = setting(
        "Server",
        "Token endpoint where clients of the supervisor (Slack, `chat --url`) get their access token.",
    )
    a2a_oauth_client_id: str | None = setting("Server", "Id with which a client gets its access token.")
    a2a_oauth_client_secret: OptionalSecret = setting("Server", "Secret with which a client gets its access token.")
    a2a_oauth_scope: str | None = setting("Server", "Scope that a client asks for.", shown_default="none")
    user_signing_key: OptionalKey = setting(
        "Server",
        "With which clients sign who asks; the supervisor believes no other name.",
        shown_default="`A2A_AUTH_SHARED_KEY`",
    )
    allowed_origins: str = setting(
        "Server", "Web pages of other sites that may call, by origin, comma-separated: `https://portal.example`.", ""
    )
    settings_overrides: str = setting(
        "Server",
        "Lines of `NAME=VALUE` that override other settings; a line without a value is ignored. The compose files pass "
        "the shell's settings on in it, because an empty variable would hide a value of the `.env` file.",
        "",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lower)] = setting(
        "Server", "How much is logged.", "info"
    )
    log_format: Annotated[Literal["text", "json"], BeforeValidator(lower)] = setting(
        "Server", "Log lines for people (`text`) or one JSON object per line (`json`).", "text"
    )

    distributed_agents: str = setting(
        "Placement",
        "Comma-separated names of the agents that run remotely, or `all`; every other agent runs in-process.",
        "",
    )
    distributed_mode: Flag = setting(
        "Placement", "`true` is `DISTRIBUTED_AGENTS=all`; ignored when `DISTRIBUTED_AGENTS` is set.", False
    )
    agents_dir: Annotated[
        Path | None, AfterValidator(existing_directory), Allowed("the path of an existing directory")
    ] = setting("Placement", "Directory with manifests of your own agents, beside the built-in ones.")
    workflows_dir: Annotated[
        Path | None, AfterValidator(existing_directory), Allowed("the path of an existing directory")
    ] = setting("Placement", "Directory with workflows of your own, beside the built-in ones.")
    skip_agent_connectivity_check: OptionalFlag = setting(
        "Placement",
        "`true` never checks at start whether remote agents can be reached, `false` always does.",
        shown_default="checked when any agent is remote",
    )
    agent_connectivity_timeout: float = setting(
        "Placement", "Seconds that all checks at start may take together.", 5.0, gt=0, le=60
    )
    agent_connect_timeout: float = setting(
        "Placement", "Seconds to reach a remote agent when it is first used.", 4.0, gt=0, le=5
    )
    agent_recheck_interval: float = setting(
        "Placement",
        "Seconds between checks of the remote agents: whether they answer, and what their cards say.",
        10.0,
        gt=0,
        le=3600,
    )

    llm_provider: Annotated[Provider | None, BeforeValidator(lower)] = setting(
        "Model",
        "Which chat model answers. `offline` needs no key and no network.",
        shown_default="`openai` or `anthropic-claude` when their key is set, else `offline`",
    )
    model_name: str | None = setting("Model", "Model to use where the provider's own variable is not set.")
    llm_temperature: float | None = setting(
        "Model", "Sampling temperature.", shown_default="the provider's", ge=0, le=2
    )
    llm_timeout: float = setting(
        "Model",
        "Seconds one model call may take. An answer that has begun is cut there and kept.",
        300.0,
        gt=0,
        le=3600,
    )
    llm_idle_timeout: float = setting(
        "Model", "Seconds without any output after which a streamed model call has failed.", 120.0, gt=0, le=3600
    )
    llm_always_stream: Flag = setting(
        "Model",
        "Streams every call of an OpenAI model, also of agents whose text is read when it is complete. For gateways "
        "that close a connection which is silent for as long as an answer takes.",
        False,
    )
    llm_max_retries: int = setting(
        "Model",
        "How often a model call is repeated after a rate limit, an error of the provider or a lost connection.",
        2,
        ge=0,
        le=10,
    )
    llm_max_retry_wait: float = setting(
        "Model",
        "Longest wait for a retry, in seconds. A provider that asks for a longer one fails the call.",
        60.0,
        ge=0,
        le=3600,
    )
    llm_max_output: int | None = setting(
        "Model", "Tokens a model may write in one call.", shown_default="the provider's", ge=1
    )
    llm_max_output_chars: int = setting(
        "Model", "Characters a model may write in one call. The answer is cut there and kept.", 500_000, ge=1
    )
    openai_endpoint: OptionalAddress = setting(
        "Model", "Base address of OpenAI or of any server that speaks its API.", shown_default="OpenAI's own"
    )
    openai_api_key: OptionalSecret = setting("Model", "Key for OpenAI or the server at `OPENAI_ENDPOINT`.")
    openai_model_name: str | None = setting("Model", "Model at OpenAI.")
    azure_openai_endpoint: OptionalAddress = setting("Model", "Address of the Azure OpenAI resource.")
    azure_openai_api_key: OptionalSecret = setting("Model", "Key for Azure OpenAI.")
    azure_openai_deployment: str | None = setting("Model", "Name of the Azure OpenAI deployment.")
    azure_openai_api_version: str | None = setting("Model", "API version of Azure OpenAI.")
    anthropic_api_key: OptionalSecret = setting("Model", "Key for Anthropic.")
    anthropic_model_name: str | None = setting("Model", "Model at Anthropic.")
    aws_region: str | None = setting("Model", "AWS region of Bedrock.", also="AWS_DEFAULT_REGION")
    aws_bedrock_model_id: str | None = setting("Model", "Model or inference profile at Bedrock.")
    google_api_key: OptionalSecret = setting("Model", "Key for Google Gemini.")
    google_gemini_model_name: str | None = setting("Model", "Model at Google Gemini.")
    google_cloud_project: str | None = setting("Model", "Google Cloud project of Vertex AI.")
    google_cloud_location: str | None = setting("Model", "Google Cloud location of Vertex AI.")
    vertexai_model_name: str | None = setting("Model", "Model at Vertex AI.")
    groq_api_key: OptionalSecret = setting("Model", "Key for Groq.")
    groq_model_name: str | None = setting("Model", "Model at Groq.")
    ollama_base_url: Address = setting("Model", "Address of the Ollama server.", "http://127.0.0.1:11434")
    ollama_model_name: str | None = setting("Model", "Model at Ollama.")
    litellm_model_name: str | None = setting("Model", "Model as LiteLLM names it, for example `openai/gpt-5`.")
    litellm_api_base: OptionalAddress = setting("Model", "Address of a LiteLLM proxy.")
    litellm_api_key: OptionalSecret = setting("Model", "Key for the LiteLLM proxy or the provider behind it.")
    offline_model_delay: float | None = setting(
        "Model",
        "Seconds the offline model waits between all words, those inside agents too.",
        None,
        ge=0,
        le=5,
        shown_default="no delay inside agents, and answers complete within a second",
    )

    langgraph_recursion_limit: int = setting(
        "Graph", "Steps the supervisor, and each agent, may take before it must answer with what it has.", 500, ge=4
    )
    langgraph_dev: Flag = setting("Graph", "Leaves the checkpointer to LangGraph Studio.", False)
    tool_timeout: float = setting("Graph", "Seconds one tool call may take.", 120.0, gt=0, le=3600)
    text_coalesce_ms: int = setting(
        "Graph", "Milliseconds for which pieces of streamed text are gathered into one event.", 25, ge=0, le=1000
    )
    tool_result_max_chars: int = setting(
        "Graph", "Characters of a tool result that go into a prompt at once; the model can read on.", 20_000, ge=100
    )

    require_approval: Annotated[Literal["never", "destructive", "writes"] | None, BeforeValidator(lower)] = setting(
        "Approvals",
        "Tool calls that wait for a person: none, those that destroy things, or all that may change something.",
        shown_default="`writes` on real backends, `destructive` on the sandbox",
    )
    require_approval_overrides: Annotated[str, Allowed(ALLOWED_OVERRIDES)] = setting(
        "Approvals",
        "Other levels for some agents and tools: `jira=never, argocd.delete_application=always`.",
        "",
    )

    mcp_start_timeout: float = setting(
        "MCP", "Seconds the MCP servers have to start; late ones join when they are ready.", 10.0, gt=0, le=600
    )
    mcp_download_timeout: float = setting(
        "MCP", "Seconds that `npx` or `uvx` may take to download a server that is not in its cache.", 1800.0, gt=0
    )
    mcp_restart_backoff: float = setting(
        "MCP", "Seconds before a server that died is started again; doubles with each failure.", 0.5, gt=0, le=60
    )
    mcp_restart_backoff_max: float = setting("MCP", "Longest wait, in seconds, between two starts.", 30.0, gt=0)

    enable_rag: Flag = setting("Knowledge base", "Whether the supervisor has a knowledge base to search.", True)
    rag_server_url: OptionalAddress = setting(
        "Knowledge base",
        "MCP address of a knowledge base server (`platform-engineer rag serve`), for example "
        "`http://127.0.0.1:8010/mcp`.",
        shown_default="the knowledge base runs inside the supervisor",
    )
    rag_database_url: Annotated[
        SecretStr | None, AfterValidator(postgres_address), Allowed("a postgresql:// address")
    ] = setting(
        "Knowledge base",
        "Postgres with pgvector in which the knowledge base is kept.",
        shown_default="a file in `DATA_DIR`",
    )
    rag_product_docs: Flag = setting(
        "Knowledge base", "Whether the documentation of this product is in the knowledge base.", True
    )
    search_max_calls: int = setting("Knowledge base", "Searches per question.", 5, ge=1)
    fetch_document_max_calls: int = setting(
        "Knowledge base", "Documents that are read per question, and web pages.", 10, ge=1
    )
    rag_max_search_results: int = setting("Knowledge base", "Results of one search.", 3, ge=1, le=50)
    rag_max_output_chars: int = setting(
        "Knowledge base", "Characters of one result that go to the model; the rest is left out.", 10_000, ge=100
    )
    embeddings_provider: Annotated[EmbeddingsProvider | None, BeforeValidator(lower)] = setting(
        "Knowledge base",
        "What turns text into vectors. `offline` needs no key and no network, `none` leaves keyword search alone.",
        shown_default="`offline` where the `embeddings` extra is installed, else `none`",
    )
    embeddings_model_name: str | None = setting(
        "Knowledge base", "Embedding model at the provider.", shown_default="a common one of the provider"
    )
    rerank_url: OptionalAddress = setting(
        "Knowledge base", "Address of a rerank API (Cohere, Jina, vLLM and others serve it) that orders results."
    )
    rerank_model_name: str | None = setting("Knowledge base", "Model at `RERANK_URL`.")
    rerank_api_key: OptionalSecret = setting("Knowledge base", "Key for `RERANK_URL`.")
    fetch_url_allow_private: Flag = setting(
        "Knowledge base", "Lets web pages be read from private and loopback addresses.", False
    )
    fetch_url_allowed_hosts: str = setting(
        "Knowledge base",
        "Hosts that web pages may be read from, comma-separated; `*.example.com` for all below one.",
        "",
        shown_default="every public host",
    )
    fetch_url_max_bytes: int = setting(
        "Knowledge base", "Size of the largest web page that is read.", 5_000_000, ge=1024
    )
    fetch_url_timeout: float = setting("Knowledge base", "Seconds one web page may take.", 20.0, gt=0, le=600)
    ingest_max_pages: int = setting("Knowledge base", "Pages that one `ingest` of a site reads at most.", 1000, ge=1)
    ingest_pages_per_second: float = setting(
        "Knowledge base", "How fast `ingest` reads the pages of one site.", 5.0, gt=0, le=1000
    )

    enable_skills: Flag = setting("Skills", "Whether the supervisor and its agents use skills.", True)
    skills_dir: Annotated[
        Path | None, AfterValidator(existing_directory), Allowed("the path of an existing directory")
    ] = setting("Skills", "Directory with one folder for each skill; changes are seen while the server runs.")
    skills_git: str = setting(
        "Skills",
        "Git repositories with skills, comma-separated: `address@commit`, or `address@branch`, which is read again by "
        "`platform-engineer skills refresh`. `#folder` at the end takes the skills below one folder.",
        "",
    )
    skills_git_token: OptionalSecret = setting("Skills", "Token for the https:// addresses of `SKILLS_GIT`.")
    skills_database_url: Annotated[
        SecretStr | None, AfterValidator(postgres_address), Allowed("a postgresql:// address")
    ] = setting(
        "Skills",
        "Postgres in which skills are kept that were created through the API.",
        shown_default="a file in `DATA_DIR`",
    )
    skills_admins: str = setting(
        "Skills",
        "Subjects of access tokens that may change skills that are not their own, comma-separated. The holder of the "
        "key always may.",
        "",
    )
    skills_crawl_hosts: str = setting(
        "Skills",
        "Hosts whose Git repositories `POST /skill-hubs/crawl` may read, comma-separated.",
        "github.com,gitlab.com",
    )
    skills_prompt_max_chars: int = setting(
        "Skills",
        "Characters of the prompt for the list of skills. The model searches for skills where the list is longer.",
        7_000,
        ge=200,
        le=7_000,
    )

    sandbox: Annotated[Literal["auto", "true", "false"], BeforeValidator(sandbox_choice)] = setting(
        "Sandbox", "Simulated backends. `auto`: on while no agent has its real backend configured.", "auto"
    )
    data_dir: Annotated[Path, AfterValidator(not_a_file), Allowed("the path of a directory")] = setting(
        "Storage",
        "Where the product keeps its files.",
        Path("~/.local/share/platform-engineer"),
        shown_default="`~/.local/share/platform-engineer`, or below `XDG_DATA_HOME`",
    )
    event_log: Annotated[Literal["sqlite", "memory"], BeforeValidator(lower)] = setting(
        "Storage",
        "Where tasks and their events are kept: a file in `DATA_DIR`, or memory until the server stops.",
        "sqlite",
    )
    event_log_max_tasks: int = setting(
        "Storage", "Ended tasks that are kept; the oldest go first, with their conversations.", 10_000, ge=1
    )
    event_log_max_age_days: float = setting(
        "Storage", "Days for which ended tasks are kept; 0 keeps them for ever.", 30.0, ge=0, le=36_500
    )
    conversations: Annotated[Literal["sqlite", "memory"], BeforeValidator(lower)] = setting(
        "Storage",
        "Where the supervisor remembers conversations, and an agent's own server those that wait for a person: a file "
        "in `DATA_DIR`, or memory until it stops.",
        "sqlite",
    )

    max_request_bytes: int = setting("Limits", "Size of the largest request that is read.", 1_000_000, ge=1024)
    form_expiry_hours: float = setting(
        "Limits",
        "Hours after which a task ends whose form nobody answers; 0 lets it wait for ever.",
        168.0,
        ge=0,
        le=87_600,
    )
    push_allow_private: Flag = setting("Limits", "Lets push notifications go to private and loopback addresses.", False)

    netutils_allow_private: Flag = setting(
        "Network tools", "Lets the network tools reach private and loopback addresses.", False
    )
    netutils_timeout: float = setting("Network tools", "Seconds one lookup or connection may take.", 5.0, gt=0, le=60)
    netutils_dns_server: Annotated[
        str | None, AfterValidator(dns_server), Allowed("an IP address, with :port where it is not 53")
    ] = setting("Network tools", "DNS server to ask.", shown_default="the system's")

    supervisor_url: Address = setting("Slack", "Where the Slack bot finds the supervisor.", "http://127.0.0.1:8000")
    supervisor_timeout: float = setting(
        "Slack",
        "Seconds that the Slack bot tries to reach a supervisor, which may be restarting, before it reports the "
        "failure to the requester.",
        60.0,
        ge=0,
        le=3600,
    )
    slack_bot_token: OptionalSecret = setting("Slack", "Bot token of the Slack app (`xoxb-...`).")
    slack_app_token: OptionalSecret = setting(
        "Slack", "App-level token (`xapp-...`); with it the bot connects to Slack (Socket Mode) and needs no address."
    )
    slack_signing_secret: OptionalSecret = setting(
        "Slack",
        "Signing secret of the Slack app; with it, and without `SLACK_APP_TOKEN`, Slack calls the bot over HTTP.",
    )
    slack_host: str = setting(
        "Slack", "Address the Slack bot listens on, for Slack and for health checks.", "127.0.0.1"
    )
    slack_port: int = setting("Slack", "Port the Slack bot listens on; 0 takes any free port.", 3000, ge=0, le=65535)
    slack_channels_file: Annotated[
        Path | None, AfterValidator(existing_file), Allowed("the path of an existing file")
    ] = setting(
        "Slack",
        "YAML file that says in which channels the bot answers, and how.",
        shown_default="every channel it is invited to, when it is mentioned",
    )
    slack_command: Annotated[str, AfterValidator(slash_command), Allowed("a word that begins with /")] = setting(
        "Slack", "The slash command of the Slack app.", "/platform"
    )
    slack_sessions: Annotated[Literal["sqlite", "memory"], BeforeValidator(lower)] = setting(
        "Slack",
        "Where the bot keeps its threads and what it has not delivered yet: a file in `DATA_DIR`, or memory.",
        "sqlite",
    )
    slack_api_url: Address = setting("Slack", "Address of Slack's Web API.", "https://slack.com/api/")

    langfuse_host: OptionalAddress = setting("Feedback", "Langfuse server that people's feedback is sent on to.")
    langfuse_public_key: OptionalSecret = setting("Feedback", "Public key of the Langfuse project.")
    langfuse_secret_key: OptionalSecret = setting("Feedback", "Secret key of the Langfuse project.")

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
