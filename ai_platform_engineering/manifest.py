"""The manifest of an agent, read from `<directory>/<name>/agent.yaml` or `<directory>/<name>.yaml`.

Placeholders `${NAME}` and `${NAME:-default}` in a server's entry are not replaced here: `mcp/` does so when it starts
the server, so a manifest never contains a secret. Only `${MANIFEST_DIR}` is replaced here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    ValidationError,
    model_validator,
)

from ai_platform_engineering.approvals.effects import EFFECTS, Effect, Pattern
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings.approval_overrides import Level
from ai_platform_engineering.skills_middleware.document import MAX_NAME_LENGTH, NAME_PATTERN
from ai_platform_engineering.utils.yaml_files import read_keys

VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
ELSEWHERE = "elsewhere"
MANIFEST_DIR = "${MANIFEST_DIR}"
RESERVED_NAMES = frozenset({SUPERVISOR, "all"})
MAX_SKILLS = 20

Transport = Literal["stdio", "http", "memory"]

_TRANSPORT_KEYS: dict[Transport, tuple[str, frozenset[str]]] = {
    "stdio": ("command", frozenset({"command", "package", "args", "env", "home", "local_files"})),
    "http": ("url", frozenset({"url", "headers", "on_behalf_of"})),
    "memory": ("module", frozenset({"module"})),
}


TOOL_KEYS = (
    "reads",
    "writes",
    "destructive",
    "destructive_when",
    "deny",
    "approvals",
    "sends",
    "trusted",
    "local_files",
    "confirm_empty",
)
"""The keys of a server's entry whose values are, or are keyed by, tool names."""


class ManifestError(Exception):
    """A manifest cannot be used. The text names the file, the key and the allowed values."""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _not_reserved(name: str) -> str:
    if name in RESERVED_NAMES:
        raise ValueError(f"{name!r} is reserved; choose another name")
    return name


def _below_home(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith(("/", "~")) or ".." in parts:
        raise ValueError(f"{path!r} must be a path below the home directory, for example .aws")
    return path


def _file_rule(value: Any) -> tuple[str, ...] | str:
    if value == ELSEWHERE:
        return ELSEWHERE
    if isinstance(value, list | tuple) and all(
        isinstance(path, str) and path.startswith(("/", "~/")) for path in value
    ):
        return tuple(value)
    raise ValueError(f"must be a list of absolute directories, or {ELSEWHERE!r} for paths of another machine")


_NAME = r"^[a-z][a-z0-9_]*$"
_VARIABLE_NAME = r"^[A-Z][A-Z0-9_]*$"
_ATTRIBUTE = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
_ALLOWED_FORMS = {
    _NAME: "a lower-case letter, then lower-case letters, digits and underscores",
    _VARIABLE_NAME: "the name of a variable, for example ARGOCD_API_URL",
    _ATTRIBUTE: "package.module:attribute",
    NAME_PATTERN: "lower-case letters, digits and single hyphens, for example incident-triage",
}

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Line = Annotated[Text, AfterValidator(_one_line)]
Keyword = Annotated[Text, StringConstraints(to_lower=True)]
ServerName = Annotated[str, StringConstraints(pattern=_NAME)]
AgentName = Annotated[ServerName, AfterValidator(_not_reserved)]
VariableName = Annotated[str, StringConstraints(pattern=_VARIABLE_NAME)]
HomePath = Annotated[Text, AfterValidator(_below_home)]
FileRule = Annotated[tuple[str, ...] | Literal["elsewhere"], PlainValidator(_file_rule)]
"""The directories whose files an argument may name, or `elsewhere` for paths on another machine."""
ModuleAttribute = Annotated[str, StringConstraints(pattern=_ATTRIBUTE)]
SkillName = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=MAX_NAME_LENGTH)]


class _ManifestPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class ModelChoice(_ManifestPart):
    """The model of an agent. The settings provide the keys that are left out."""

    provider: Text | None = None
    name: Text | None = None


class ToolCheck(_ManifestPart):
    """A cheap tool call that succeeds only if the server can read from its backend with the configured credentials."""

    tool: Text
    arguments: Mapping[str, Any] = Field(default_factory=dict)


class EmptyCheck(ToolCheck):
    """A tool call that fails if an empty result of another tool hides an error of the backend.

    Its arguments are `arguments`, plus the original call's arguments that are named in `same`.
    """

    same: tuple[Text, ...] = ()


class SignedHeader(_ManifestPart):
    """The user of a call, signed with `key`, in a header of the request. `audience` names the server.

    With `derived`, the signing key is derived from `key`, which has other purposes too.
    """

    key: Text
    audience: Text | None = None
    derived: bool = False


class TokenExchange(_ManifestPart):
    """The user's access token, exchanged for one that is valid at the server (RFC 8693)."""

    audience: Text | None = None
    resource: Text | None = None
    scope: Text | None = None


class OnBehalfOf(_ManifestPart):
    """How a server learns for which user a tool is called. Exactly one of the keys is set."""

    signed_header: SignedHeader | None = None
    token_exchange: TokenExchange | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.signed_header is None) == (self.token_exchange is None):
            raise ValueError("needs one of the keys 'signed_header' and 'token_exchange'")
        return self


class McpServer(_ManifestPart):
    """One MCP server of an agent: how to reach it, and which of its tools the agent may use.

    - `module` is `package.module:attribute`. The attribute is a `ToolServer`, a FastMCP server, or a function that
      creates one of them from the settings.
    - `package` is the directory with the lock of a package, relative to the manifest; `command` is a program in it.
    - `on_behalf_of` declares how the server learns for which user a tool is called.
    - `tools` is an allowlist; `None` allows every tool.
    - `reads`, `writes` and `destructive` declare the effects of tools, `destructive_when` the arguments that make a
      call destructive, `deny` the arguments that are refused.
    - `sends` declares, by tool, the argument that names the host to which a call sends something.
    - `trusted` has the tools whose results contain no text that others can write.
    - `local_files` declares, by tool and argument, which local files may be named.
    - `confirm_empty` has the tools that return an empty list when the backend refuses a request, each with a call that
      fails in that case.
    """

    name: ServerName
    transport: Transport
    command: Text | None = None
    package: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)
    home: tuple[HomePath, ...] = ()
    local_files: Mapping[Text, Mapping[Text, FileRule]] = Field(default_factory=dict)
    url: Text | None = None
    headers: Mapping[str, str] = Field(default_factory=dict)
    on_behalf_of: OnBehalfOf | None = None
    module: ModuleAttribute | None = None
    tools: tuple[Text, ...] | None = None
    reads: tuple[Text, ...] = ()
    writes: tuple[Text, ...] = ()
    destructive: tuple[Text, ...] = ()
    destructive_when: Mapping[Text, Mapping[Text, Pattern]] = Field(default_factory=dict)
    deny: Mapping[Text, Mapping[Text, Pattern]] = Field(default_factory=dict)
    approvals: Mapping[Text, Literal["always", "never"]] = Field(default_factory=dict)
    sends: Mapping[Text, Text] = Field(default_factory=dict)
    trusted: tuple[Text, ...] = ()
    check: ToolCheck | None = None
    confirm_empty: Mapping[Text, EmptyCheck] = Field(default_factory=dict)
    start_timeout: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _keys_fit_transport(self) -> Self:
        needed, allowed = _TRANSPORT_KEYS[self.transport]
        if getattr(self, needed) is None:
            raise ValueError(f"transport {self.transport} needs the key {needed!r}")
        others = frozenset[str]().union(*(keys for _, keys in _TRANSPORT_KEYS.values())) - allowed
        if misplaced := sorted(others & self.model_fields_set):
            raise ValueError(
                f"transport {self.transport} takes {_joined(sorted(allowed))}, not {_joined(misplaced)}",
            )
        return self

    @model_validator(mode="after")
    def _named_tools_are_allowed(self) -> Self:
        if self.tools is not None:
            for key in TOOL_KEYS:
                if unknown := sorted(set(getattr(self, key)) - set(self.tools)):
                    raise ValueError(f"{key!r} names {_joined(unknown)}, which 'tools' does not list")
            if self.check is not None and self.check.tool not in self.tools:
                raise ValueError(f"'check' names {self.check.tool}, which 'tools' does not list")
        return self

    @model_validator(mode="after")
    def _check_needs_no_user(self) -> Self:
        if self.check is not None and self.on_behalf_of is not None and self.on_behalf_of.token_exchange is not None:
            raise ValueError("'check' is called for no user, so it cannot be used together with 'token_exchange'")
        return self

    @model_validator(mode="after")
    def _one_effect_per_tool(self) -> Self:
        for (key, tools), (other, others) in combinations(self._tools_by_effect_key().items(), 2):
            if repeated := sorted(set(tools) & set(others)):
                raise ValueError(f"{key!r} and {other!r} both name {_joined(repeated)}; a tool has one effect")
        return self

    def effect(self, tool: str) -> Effect | None:
        """The declared effect of a tool; `None` if this entry does not declare one."""
        keys = zip(EFFECTS, self._tools_by_effect_key().values(), strict=True)
        return next((effect for effect, tools in keys if tool in tools), None)

    def _tools_by_effect_key(self) -> dict[str, tuple[str, ...]]:
        return {"reads": self.reads, "writes": self.writes, "destructive": self.destructive}

    def variables(self) -> set[str]:
        """The names of the placeholders `${NAME}` in this entry."""
        return {match["name"] for text in self.texts() for match in VARIABLE.finditer(text)}

    def texts(self) -> Iterator[str]:
        """The values in which placeholders are replaced."""
        yield from (text for text in (self.command, self.url) if text is not None)
        yield from self.args
        yield from self.env.values()
        yield from self.headers.values()
        if self.on_behalf_of is not None and self.on_behalf_of.signed_header is not None:
            yield self.on_behalf_of.signed_header.key


class AgentManifest(_ManifestPart):
    """An agent: its description and prompt, the MCP servers of its tools, and the skills it may read.

    `settings` describes the variables of its backend for people.
    """

    name: AgentName
    title: Line
    description: Line
    keywords: tuple[Keyword, ...] = ()
    prompt: Text
    requires: tuple[VariableName, ...] = ()
    settings: Mapping[VariableName, Line] = Field(default_factory=dict)
    model: ModelChoice | None = None
    servers: tuple[McpServer, ...] = ()
    approval: Level | None = None
    sandbox: ModuleAttribute | None = None
    skills: tuple[SkillName, ...] = Field(default=(), max_length=MAX_SKILLS)
    examples: tuple[Line, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _title_from_name(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "title" not in values and isinstance(values.get("name"), str):
            return {**values, "title": values["name"].replace("_", " ").title()}
        return values

    @model_validator(mode="after")
    def _server_names_differ(self) -> Self:
        names = [server.name for server in self.servers]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"'servers' has more than one entry named {_joined(repeated)}")
        return self

    def variables(self) -> set[str]:
        """The names of the placeholders `${NAME}` in the entries of all servers."""
        return {name for server in self.servers for name in server.variables()}

    @property
    def exchanges_tokens(self) -> bool:
        """Whether one of its servers takes an access token of the user."""
        return any(server.on_behalf_of and server.on_behalf_of.token_exchange for server in self.servers)

    def missing(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """The required settings that are missing or blank, in the manifest's order."""
        return tuple(name for name in self.requires if not environ.get(name, "").strip())

    def configured(self, environ: Mapping[str, str]) -> bool:
        """Whether every required setting is set, so that the real backend can be used."""
        return not self.missing(environ)


def builtin_directory() -> Path:
    """The directory of the built-in agents."""
    return Path(__file__).parent / "agents"


def load_manifests(directories: Sequence[Path]) -> dict[str, AgentManifest]:
    """The agents of all directories, by name. A later directory's agent replaces one of the same name entirely."""
    manifests: dict[str, AgentManifest] = {}
    for directory in directories:
        manifests |= _load_directory(directory)
    return dict(sorted(manifests.items()))


def read_manifest(file: Path) -> AgentManifest:
    """Read one manifest file; raises `ManifestError` with every problem."""
    content = read_keys(file, "agent", AgentManifest.model_fields, ManifestError)
    try:
        return _with_directory(AgentManifest.model_validate(content), file.parent)
    except ValidationError as error:
        problems = (describe_error(details) for details in error.errors(include_url=False))
        raise ManifestError("\n".join(f"{file}: {problem}." for problem in problems)) from None


def _with_directory(manifest: AgentManifest, directory: Path) -> AgentManifest:
    """The manifest with `${MANIFEST_DIR}` replaced in the arguments of its servers, and absolute paths of packages."""
    here = directory.resolve()

    def located(server: McpServer) -> McpServer:
        args = tuple(arg.replace(MANIFEST_DIR, str(here)) for arg in server.args)
        package = None if server.package is None else str((here / server.package).resolve())
        return server.model_copy(update={"args": args, "package": package})

    return manifest.model_copy(update={"servers": tuple(map(located, manifest.servers))})


def _load_directory(directory: Path) -> dict[str, AgentManifest]:
    if not directory.is_dir():
        raise ManifestError(f"{directory}: is not a directory; agents are loaded from <directory>/<name>/agent.yaml.")
    manifests: dict[str, AgentManifest] = {}
    origins: dict[str, Path] = {}
    for file in sorted([*directory.glob("*/agent.yaml"), *directory.glob("*.yaml")]):
        manifest = read_manifest(file)
        if manifest.name in manifests:
            other = origins[manifest.name]
            raise ManifestError(f"{file}: name: {manifest.name!r} is also the name in {other}; choose another name.")
        manifests[manifest.name] = manifest
        origins[manifest.name] = file
    return manifests


def describe_error(error: Mapping[str, Any]) -> str:
    """The key, the problem and the allowed values of a pydantic error. Values that may be secret are left out."""
    location: tuple[int | str, ...] = error["loc"]
    key = ".".join(str(part) for part in location) or "the manifest"
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            problem = f"unknown key; allowed are {_joined(_keys_beside(location))}"
        case "missing":
            problem = "is missing"
        case "literal_error":
            problem = f"{error['input']!r} is not allowed; use {context['expected']}"
        case "string_pattern_mismatch":
            problem = f"{error['input']!r} is not allowed; use {_ALLOWED_FORMS[context['pattern']]}"
        case "string_too_short":
            problem = "must not be empty"
        case "string_type":
            problem = "must be text; put the value in quotes"
        case "value_error":
            problem = str(context["error"])
        case _:
            problem = f"{error['msg'][0].lower()}{error['msg'][1:]}"
    return f"{key}: {problem}"


def _keys_beside(location: tuple[int | str, ...]) -> list[str]:
    match location[:-1]:
        case ("servers", _, "check"):
            return list(ToolCheck.model_fields)
        case ("servers", _):
            return list(McpServer.model_fields)
        case ("servers", _, "confirm_empty", _):
            return list(EmptyCheck.model_fields)
        case ("model",):
            return list(ModelChoice.model_fields)
        case _:
            return list(AgentManifest.model_fields)


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names)
