"""Settings of the servers: addresses, authentication, logs, and the placement of agents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, SecretStr

from ai_platform_engineering.settings.fields import (
    AllowedValues,
    Flag,
    OptionalAddress,
    OptionalDirectory,
    OptionalFlag,
    OptionalKey,
    OptionalSecret,
    SettingsGroup,
    host_names,
    http_addresses,
    lower,
    networks,
    setting,
)
from ai_platform_engineering.settings.named_keys import (
    ALLOWED_AGENT_KEYS,
    ALLOWED_KEYS,
    valid_agent_keys,
    valid_keys,
)


class ServerSettings(SettingsGroup):
    a2a_host: str = setting(
        "Server", "Address the server listens on. `0.0.0.0` accepts connections from other machines.", "127.0.0.1"
    )
    a2a_port: int = setting("Server", "Port the server listens on. 0 takes any free port.", 8000, ge=0, le=65535)
    a2a_public_url: OptionalAddress = setting(
        "Server",
        "URL under which callers reach the server. The agent card shows it.",
        shown_default="from `A2A_HOST` and `A2A_PUBLIC_PORT`",
    )
    a2a_public_port: int | None = setting(
        "Server",
        "Port shown in the agent card when callers use a different port than `A2A_PORT`, for example a published "
        "container port.",
        shown_default="`A2A_PORT`",
        ge=1,
        le=65535,
    )
    shutdown_grace: float = setting(
        "Server",
        "Seconds that running tasks have to finish after SIGTERM, before they are stopped. The server accepts no new "
        "messages meanwhile. SIGINT (Ctrl-C) stops them at once. Keep it below the time after which your platform "
        "kills a container.",
        5,
        ge=0,
        le=3600,
    )
    allowed_hosts: Annotated[
        str, AfterValidator(host_names), AllowedValues("host names without scheme and port, comma-separated")
    ] = setting(
        "Server",
        "Additional host names that requests may use in the `Host` header. Loopback names, the host of "
        "`A2A_PUBLIC_URL` and the listening address are always accepted. `.example.com` accepts the domain and its "
        "subdomains, `*` accepts any name.",
        "",
    )
    forwarded_allow_ips: Annotated[
        str, AfterValidator(networks), AllowedValues("IP addresses and networks, comma-separated, or *")
    ] = setting(
        "Server",
        "Proxies in front of the server. The headers `X-Forwarded-For` and `X-Forwarded-Proto` of a request are used "
        "only if it comes from one of them. The limit of connections per address does not apply to them.",
        "127.0.0.1,::1",
    )
    max_connections: int | None = setting(
        "Server",
        "Maximum number of open connections of one server process. At the limit, a new connection takes the place of "
        "the oldest one that has not sent a complete request, or of the one that has been idle for the longest time.",
        shown_default="half of the files that the process may open (`ulimit -n`), at most 8192",
        ge=1,
    )
    max_connections_per_address: int = setting(
        "Server",
        "Maximum number of open connections of one client address; all addresses of an IPv6 network (/64) count as "
        "one. 0 is no limit.",
        256,
        ge=0,
    )
    max_header_bytes: int = setting(
        "Server",
        "Largest request line with all headers, in bytes. A larger one is answered with status 431.",
        32_768,
        ge=1024,
        le=1_048_576,
    )
    header_timeout: float = setting(
        "Server",
        "Seconds in which the headers of a request must arrive. A slower client gets status 408.",
        10.0,
        gt=0,
        le=3600,
    )
    body_timeout: float = setting(
        "Server",
        "Seconds in which the body of a request must arrive, and one more for each 500 bytes that have arrived. A "
        "slower client gets status 408. Responses are not limited.",
        30.0,
        gt=0,
        le=3600,
    )
    allow_anonymous: Flag = setting(
        "Server",
        "Allows a server that other machines can reach to start without a key and without an OAuth2 issuer. Anyone "
        "who reaches it can then call it.",
        False,
    )
    a2a_auth_shared_key: OptionalKey = setting(
        "Server",
        "Key of the supervisor with every role. When set, callers must send it, or one of `A2A_AUTH_KEYS`, as a bearer "
        "token.",
    )
    a2a_auth_keys: Annotated[SecretStr | None, AfterValidator(valid_keys), AllowedValues(ALLOWED_KEYS)] = setting(
        "Server",
        "Named keys of the supervisor, for example `ci:user:<key>, slack:bot:<key>, ops:admin:<key>`. A holder of the "
        "role `user` sees only what this key has asked; `bot` may also state for which user it asks; `admin` sees and "
        "operates everything.",
    )
    supervisor_key: OptionalKey = setting(
        "Server",
        "Key that clients of the supervisor send to it: the Slack bot, `chat --url` and the other commands.",
        shown_default="`A2A_AUTH_SHARED_KEY`",
    )
    a2a_agents_auth_key: OptionalKey = setting(
        "Server",
        "Key of the servers behind the supervisor: remote agents and a knowledge base server. The supervisor sends "
        "it to them as a bearer token, and they require it. It also signs the supervisor's delegations.",
    )
    a2a_agent_keys: Annotated[SecretStr | None, AfterValidator(valid_agent_keys), AllowedValues(ALLOWED_AGENT_KEYS)] = (
        setting(
            "Server",
            "Keys of single agents, for example `argocd:<key>, jira:<key>`, which take precedence over "
            "`A2A_AGENTS_AUTH_KEY`. The process of an agent needs only its own.",
        )
    )
    a2a_agents_share_key: Flag = setting(
        "Server",
        "Makes `A2A_AUTH_SHARED_KEY` also the key of the servers behind the supervisor when they have none of their "
        "own. Every holder of that key can then call these servers as well.",
        False,
    )
    a2a_oauth_grant_url: OptionalAddress = setting(
        "Server",
        "Token endpoint from which clients of the supervisor (the Slack bot, `chat --url`) get an access token "
        "with the client credentials grant. Requires `A2A_OAUTH_CLIENT_ID` and `A2A_OAUTH_CLIENT_SECRET`.",
    )
    a2a_oauth_client_id: str | None = setting("Server", "Client id for `A2A_OAUTH_GRANT_URL`.")
    a2a_oauth_client_secret: OptionalSecret = setting("Server", "Client secret for `A2A_OAUTH_GRANT_URL`.")
    a2a_oauth_scope: str | None = setting(
        "Server", "Scope that a client requests at `A2A_OAUTH_GRANT_URL`.", shown_default="none"
    )
    metrics_public: Flag = setting(
        "Server",
        "Serves `/metrics` without authentication, for a Prometheus server that should not have the key.",
        False,
    )
    user_signing_key: OptionalKey = setting(
        "Server",
        "Key with which clients, for example the Slack bot, sign the user of each message. The supervisor accepts a "
        "user only with a valid signature, so clients and supervisor need the same key.",
        shown_default="`SUPERVISOR_KEY`, or the key that the client sends",
    )
    allowed_origins: str = setting(
        "Server",
        "Origins of other web sites whose pages may call the server, comma-separated, for example "
        "`https://portal.example`.",
        "",
    )
    settings_overrides: str = setting(
        "Server",
        "Lines of `NAME=VALUE` that override all other sources; a line without a value is ignored. The compose "
        "files use it to pass on the shell's settings, because an empty variable would hide a value of the `.env` "
        "file.",
        "",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(lower)] = setting(
        "Server", "Lowest level that is logged.", "info"
    )
    log_format: Annotated[Literal["text", "json"], BeforeValidator(lower)] = setting(
        "Server", "Format of log lines: `text` for people, `json` for one JSON object per line.", "text"
    )

    audit: Flag = setting(
        "Audit",
        "Records sign-ins, denials, approvals, deletions and every tool call that may change something. The entries "
        "are in the file `audit.db` in `DATA_DIR`, or in the database with `EVENT_LOG=postgres`.",
        True,
    )
    audit_key: OptionalKey = setting(
        "Audit",
        "Key for the hashes of the entries. With it, a person who can write the record cannot change it unnoticed. "
        "`audit verify` needs the same key. Keep it as long as the record.",
        shown_default="hashes without a key",
    )
    audit_required: Flag = setting(
        "Audit",
        "Refuses tool calls that may change something while the record cannot be written. Otherwise they are made, "
        "entries are kept in memory meanwhile, and `/readyz` is degraded.",
        False,
    )
    audit_retention_days: float = setting(
        "Audit", "Days after which entries are deleted. 0 keeps them indefinitely.", 0.0, ge=0, le=36_500
    )

    distributed_agents: str = setting(
        "Placement",
        "Agents that run remotely: comma-separated names, for example `argocd,jira`, or `all`. Every other agent "
        "runs inside the supervisor.",
        "",
    )
    distributed_mode: Flag = setting(
        "Placement", "`true` is the same as `DISTRIBUTED_AGENTS=all`. Ignored when `DISTRIBUTED_AGENTS` is set.", False
    )
    agents_dir: OptionalDirectory = setting(
        "Placement",
        "Directory with manifests of your own agents. They are added to the built-in agents and replace those of "
        "the same name.",
    )
    workflows_dir: OptionalDirectory = setting(
        "Placement",
        "Directory with your own workflows. They are added to the built-in workflows and replace those of the same "
        "name.",
    )
    skip_agent_connectivity_check: OptionalFlag = setting(
        "Placement",
        "Whether to skip the checks of remote agents, at start and while running. `true` never checks, `false` "
        "always checks.",
        shown_default="checks when any agent is remote",
    )
    agent_connectivity_timeout: float = setting(
        "Placement",
        "Seconds for the check of all remote agents at start. They are checked in parallel.",
        5.0,
        gt=0,
        le=60,
    )
    agent_allowed_origins: Annotated[
        str, AfterValidator(http_addresses), AllowedValues("http or https addresses, comma-separated")
    ] = setting(
        "Placement",
        "Addresses besides the configured ones that the cards of remote agents may name, comma-separated, for example "
        "`https://api.example.com`. Requests to those agents, with their credentials, are sent there.",
        "",
        shown_default="none",
    )
    agent_connect_timeout: float = setting(
        "Placement", "Seconds to connect to a remote agent when it is used or checked again.", 4.0, gt=0, le=5
    )
    agent_reconnect_seconds: float = setting(
        "Placement",
        "Seconds in which the supervisor reconnects to a remote agent of this product whose connection was lost, for "
        "example because the agent is restarted. The delegation continues where it was. After this time, and at once "
        "with 0, the delegation fails.",
        30.0,
        ge=0,
        le=3600,
    )
    agent_recheck_interval: float = setting(
        "Placement",
        "Seconds between checks of the remote agents. A check finds out whether an agent answers and reads its card.",
        10.0,
        gt=0,
        le=3600,
    )
