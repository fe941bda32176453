"""`Settings`: all settings of one process. The settings of large areas are in base classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PrivateAttr
from pydantic_settings import SettingsConfigDict

from ai_platform_engineering.settings.approval_overrides import ALLOWED_OVERRIDES, Level
from ai_platform_engineering.settings.conversation_settings import ConversationSettings
from ai_platform_engineering.settings.fields import (
    Address,
    AllowedValues,
    Flag,
    OptionalAddress,
    OptionalPostgresAddress,
    OptionalSecret,
    dns_server,
    existing_file,
    lower,
    not_a_file,
    sandbox_choice,
    setting,
    slash_command,
)
from ai_platform_engineering.settings.knowledge_settings import KnowledgeSettings
from ai_platform_engineering.settings.llm_settings import LlmSettings
from ai_platform_engineering.settings.memory_settings import MemorySettings
from ai_platform_engineering.settings.server_settings import ServerSettings
from ai_platform_engineering.settings.sign_in_settings import SignInSettings


class Settings(ServerSettings, SignInSettings, LlmSettings, KnowledgeSettings, ConversationSettings, MemorySettings):
    """All settings of one process. Frozen; created by `load_settings`."""

    model_config = SettingsConfigDict(defer_build=False)

    _environ: Mapping[str, str] = PrivateAttr(default_factory=lambda: MappingProxyType({}))
    _file_variables: frozenset[str] = PrivateAttr(default=frozenset())

    langgraph_recursion_limit: int = setting(
        "Graph",
        "Maximum number of graph steps of the supervisor, and of each agent, per run. When the limit is near, the "
        "model must answer with what it has found.",
        500,
        ge=4,
    )
    langgraph_dev: Flag = setting(
        "Graph", "Runs without a checkpointer, because LangGraph Studio provides its own.", False
    )
    tool_timeout: float = setting("Graph", "Seconds one tool call may take.", 120.0, gt=0, le=3600)
    text_coalesce_ms: int = setting(
        "Graph",
        "Minimum milliseconds between two events of streamed text; the text in between is joined into one event. "
        "The interval grows when many runs are active.",
        25,
        ge=0,
        le=1000,
    )
    tool_result_max_chars: int = setting(
        "Graph",
        "Maximum number of characters of a tool result that go into the prompt at once. The model can read the "
        "rest in parts.",
        20_000,
        ge=100,
    )

    require_approval: Annotated[Literal["never", "destructive", "writes"] | None, BeforeValidator(lower)] = setting(
        "Approvals",
        "Which tool calls need a person's approval: `never` none, `destructive` those that delete or destroy "
        "something, `writes` all that may change something.",
        shown_default="`writes` on real backends, `destructive` on the sandbox",
    )
    require_approval_overrides: Annotated[str, AllowedValues(ALLOWED_OVERRIDES)] = setting(
        "Approvals",
        "Levels for single agents and tools, for example `jira=never, argocd.delete_application=always`.",
        "",
    )
    untrusted_content: Annotated[Literal["approve", "trust"], BeforeValidator(lower)] = setting(
        "Approvals",
        "What happens after the model has read text that others can write: documents, web pages, results from real "
        "backends. `approve`: calls that change something need approval at every level, and so do calls that send data "
        "to a host that no person has named, `FETCH_URL_ALLOWED_HOSTS` does not list and no rule of the policy allows. "
        "`trust`: such text changes nothing.",
        "approve",
    )
    approvers: str = setting(
        "Approvals",
        "Who may approve tool calls, comma-separated: subjects such as `slack:T1/U1` or `key:release`, and groups as "
        "`group:sre`. The supervisor enforces it for every client.",
        "",
        shown_default="everybody who may answer in the conversation",
    )
    approval_four_eyes: Flag = setting(
        "Approvals", "Another person than the one who asked has to approve a tool call. Both must be signed in.", False
    )
    approval_expiry: float = setting(
        "Approvals",
        "Seconds after which a request for approval, and an approval whose call has not begun, expire. The call is "
        "then not made. 0 stands for `FORM_EXPIRY_HOURS`.",
        0.0,
        ge=0,
        le=315_360_000,
    )

    policy_file: Annotated[
        Path | None, AfterValidator(existing_file), AllowedValues("the path of an existing file")
    ] = setting(
        "Approvals",
        "Path of `policy.yaml`: who may see and use which agents, tools, workflows, skills and knowledge, and who "
        "approves tool calls.",
        shown_default="no policy: everybody sees everything",
    )

    mcp_start_timeout: float = setting(
        "MCP",
        "Seconds that the start of the supervisor or of an agent waits for its MCP servers. The tools of a slower "
        "server become available when it is ready.",
        10.0,
        gt=0,
        le=600,
    )
    mcp_download_timeout: float = setting(
        "MCP", "Seconds that `npx` or `uvx` may take to download an MCP server that is not in its cache.", 1800.0, gt=0
    )
    mcp_allow_downloads: Flag = setting(
        "MCP",
        "Allows `npx` and `uvx` in manifests to download an MCP server that is not in their cache. Such a download is "
        "not checked against a lock.",
        False,
    )
    mcp_servers_dir: Annotated[Path | None, AllowedValues("the path of a directory")] = setting(
        "MCP",
        "Directory into which `agents install` installs the stdio MCP servers of agents.",
        shown_default="`mcp-servers` in `DATA_DIR`",
    )
    mcp_restart_backoff: float = setting(
        "MCP",
        "Seconds before an MCP server that stopped is restarted. The delay doubles with each failure in a row; the "
        "first restart of a server that was running is immediate.",
        0.5,
        gt=0,
        le=60,
    )
    mcp_restart_backoff_max: float = setting(
        "MCP", "Longest delay between two restarts of an MCP server, in seconds.", 30.0, gt=0
    )
    mcp_confine: Flag = setting(
        "MCP",
        "Confines the processes of stdio MCP servers: they cannot read the files of the user who runs the supervisor, "
        "except those that the manifest names. Needs Linux.",
        True,
    )
    mcp_child_user: str | None = setting(
        "MCP",
        "User that stdio MCP servers run as, if the supervisor runs as root.",
        shown_default="`platform-mcp` if it exists, else the user of the supervisor",
    )

    sandbox: Annotated[Literal["auto", "true", "false"], BeforeValidator(sandbox_choice)] = setting(
        "Sandbox",
        "Whether agents work on the sandbox, a simulated organization with sample data, instead of their real "
        "backends. `auto` uses the sandbox as long as no agent has its real backend configured.",
        "auto",
    )
    data_dir: Annotated[Path, AfterValidator(not_a_file), AllowedValues("the path of a directory")] = setting(
        "Storage",
        "Directory for the files of the product.",
        Path("~/.local/share/platform-engineer"),
        shown_default="`~/.local/share/platform-engineer`, or `$XDG_DATA_HOME/platform-engineer`",
    )
    event_log: Annotated[Literal["sqlite", "memory", "postgres"], BeforeValidator(lower)] = setting(
        "Storage",
        "Where tasks and their events are stored: `sqlite` in a file in `DATA_DIR`, `memory` until the server stops, "
        "`postgres` in a database that several servers share.",
        "sqlite",
    )
    event_log_postgres_dsn: OptionalPostgresAddress = setting(
        "Storage",
        "Postgres database for tasks and their events.",
        fallback="LANGGRAPH_CHECKPOINT_POSTGRES_DSN",
    )
    event_log_max_tasks: int = setting(
        "Storage",
        "Maximum number of ended tasks that are kept. The oldest are deleted first, together with their conversations.",
        10_000,
        ge=1,
    )
    event_log_max_age_days: float = setting(
        "Storage", "Days after which ended tasks are deleted. 0 keeps them indefinitely.", 30.0, ge=0, le=36_500
    )

    usage: Flag = setting(
        "Limits",
        "Counts model calls, tokens, runs and run time per person, group and day: in the file `usage.db` in "
        "`DATA_DIR`, or in the database with `EVENT_LOG=postgres`.",
        True,
    )
    budgets_file: Annotated[
        Path | None, AfterValidator(existing_file), AllowedValues("the path of an existing file")
    ] = setting(
        "Limits",
        "Path of `budgets.yaml`: the prices of models, and the limits of tokens, cost, runs and run time per day. See "
        "[budgets.md](budgets.md).",
        shown_default="nothing is limited",
    )
    max_request_bytes: int = setting(
        "Limits", "Largest request body that a server accepts, in bytes.", 1_000_000, ge=1024
    )
    max_concurrent_runs: int = setting(
        "Limits",
        "Maximum number of tasks that one server process works on at the same time, where several processes share the "
        "work (`EVENT_LOG=postgres`). Further tasks wait for a process with room.",
        64,
        ge=1,
        le=10_000,
    )
    form_expiry_hours: float = setting(
        "Limits",
        "Hours after which a task fails when its form is not answered. 0 waits indefinitely.",
        168.0,
        ge=0,
        le=87_600,
    )
    push_allow_private: Flag = setting("Limits", "Allows push notifications to private and loopback addresses.", False)
    push_allow_http: Flag = setting(
        "Limits",
        "Allows push notifications over plain HTTP to other machines. Without it, http is for loopback addresses only.",
        False,
    )
    push_allowed_hosts: str = setting(
        "Limits",
        "Hosts to which push notifications may be sent, comma-separated. `*.example.com` allows all subdomains of "
        "`example.com`.",
        "",
        shown_default="every host",
    )
    push_allowed_ports: str = setting(
        "Limits",
        "Ports to which push notifications may be sent, comma-separated, for example `443,8443`.",
        "",
        shown_default="every port",
    )

    netutils_allow_private: Flag = setting(
        "Network tools", "Allows the network tools to reach private and loopback addresses.", False
    )
    netutils_timeout: float = setting("Network tools", "Seconds for one lookup or connection.", 5.0, gt=0, le=60)
    netutils_dns_server: Annotated[
        str | None, AfterValidator(dns_server), AllowedValues("an IP address, with :port where it is not 53")
    ] = setting(
        "Network tools",
        "DNS server for lookups, for example `10.0.0.2` or `10.0.0.2:5353`.",
        shown_default="the DNS server of the system",
    )

    supervisor_url: Address = setting(
        "Slack", "URL at which the Slack bot reaches the supervisor.", "http://127.0.0.1:8000"
    )
    supervisor_timeout: float = setting(
        "Slack",
        "Seconds for which the Slack bot retries to reach the supervisor, for example during its restart, before "
        "it reports the failure to the requester.",
        60.0,
        ge=0,
        le=3600,
    )
    slack_bot_token: OptionalSecret = setting("Slack", "Bot token of the Slack app (`xoxb-...`).")
    slack_app_token: OptionalSecret = setting(
        "Slack",
        "App-level token of the Slack app (`xapp-...`). With it the bot uses Socket Mode and needs no public URL.",
    )
    slack_signing_secret: OptionalSecret = setting(
        "Slack",
        "Signing secret of the Slack app. With it, and without `SLACK_APP_TOKEN`, the bot receives Slack's "
        "requests over HTTP.",
    )
    slack_host: str = setting(
        "Slack", "Address the Slack bot listens on, for health checks and for Slack's requests over HTTP.", "127.0.0.1"
    )
    slack_port: int = setting("Slack", "Port the Slack bot listens on. 0 takes any free port.", 3000, ge=0, le=65535)
    slack_channels_file: Annotated[
        Path | None, AfterValidator(existing_file), AllowedValues("the path of an existing file")
    ] = setting(
        "Slack",
        "YAML file that defines in which channels the bot answers, and how.",
        shown_default="the bot answers mentions in every channel it is invited to",
    )
    slack_command: Annotated[str, AfterValidator(slash_command), AllowedValues("a word that begins with /")] = setting(
        "Slack", "Slash command of the Slack app.", "/platform"
    )
    slack_sessions: Annotated[Literal["sqlite", "memory", "postgres"], BeforeValidator(lower)] = setting(
        "Slack",
        "Where the bot stores its threads and its undelivered operations: `sqlite` in a file in `DATA_DIR`, "
        "`memory` until the bot stops, `postgres` in a database for bots on several machines.",
        "sqlite",
    )
    slack_sessions_postgres_dsn: OptionalPostgresAddress = setting(
        "Slack", "Postgres database for `SLACK_SESSIONS=postgres`. The bots of one Slack app share it."
    )
    slack_api_url: Address = setting("Slack", "URL of Slack's Web API.", "https://slack.com/api/")

    langfuse_host: OptionalAddress = setting(
        "Feedback", "URL of the Langfuse server to which users' feedback is forwarded. Requires both keys."
    )
    langfuse_public_key: OptionalSecret = setting("Feedback", "Public key of the Langfuse project.")
    langfuse_secret_key: OptionalSecret = setting("Feedback", "Secret key of the Langfuse project.")

    @property
    def environ(self) -> Mapping[str, str]:
        """Environment and `.env` file at start, without empty values. Per-agent variables are read from here."""
        return self._environ

    @property
    def servers_dir(self) -> Path:
        """Directory of installed stdio MCP servers."""
        return (self.mcp_servers_dir or self.data_dir / "mcp-servers").expanduser().absolute()

    def approval_level(self, *, sandboxed: bool) -> Level:
        """Approval level of an agent without an override. The sandbox can be reset, so its default is less strict."""
        return self.require_approval or ("destructive" if sandboxed else "writes")

    def describe_approval(self, *, sandbox_on: bool) -> str:
        """Default approval level as text, for example `destructive on the sandbox, writes on real backends`."""
        real, sandbox = self.approval_level(sandboxed=False), self.approval_level(sandboxed=True)
        return f"{sandbox} on the sandbox, {real} on real backends" if sandbox_on and sandbox != real else real

    @property
    def file_variables(self) -> frozenset[str]:
        """Names of the variables in the `.env` file."""
        return self._file_variables

    @property
    def public_url(self) -> str:
        """URL under which callers reach the server."""
        if self.a2a_public_url:
            return self.a2a_public_url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.a2a_host, self.a2a_host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.a2a_public_port or self.a2a_port}"
