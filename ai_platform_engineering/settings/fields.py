"""Types of settings: how a value is read, and what it may be in words."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic.fields import FieldInfo

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

MIN_KEY_LENGTH: Final = 16
_FLAGS: Final = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
FLAG_VALUES: Final = "true or false (also 1/0, yes/no, on/off)"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a setting may be, in words, where its type and bounds do not say it."""

    text: str


def flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    try:
        return _FLAGS[str(value).lower()]
    except KeyError:
        raise ValueError("not a flag") from None


def optional_flag(value: Any) -> bool | None:
    return None if value is None else flag(value)


def lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def sandbox_choice(value: Any) -> Any:
    lowered = lower(value)
    return str(_FLAGS[lowered]).lower() if lowered in _FLAGS else lowered


def http_address(value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("not an http address")
    _ = parts.port  # raises ValueError when it is not a port number
    return value


def postgres_address(value: SecretStr | None) -> SecretStr | None:
    if value is not None and urlsplit(value.get_secret_value()).scheme not in {"postgresql", "postgres"}:
        raise ValueError("not a Postgres address")
    return value


def header_safe(value: SecretStr | None) -> SecretStr | None:
    # Secrets travel in HTTP headers, where a line break or a space would split them.
    if value is not None and not re.fullmatch(r"[\x21-\x7e]+", value.get_secret_value()):
        raise ValueError("not usable in a header")
    return value


def long_enough(value: SecretStr | None) -> SecretStr | None:
    if value is not None and len(value.get_secret_value()) < MIN_KEY_LENGTH:
        raise ValueError("too short")
    return value


def host_names(value: str) -> str:
    for name in filter(None, map(str.strip, value.split(","))):
        if name != "*" and not re.fullmatch(r"(\*?\.)?[A-Za-z0-9_.-]+|\[?[0-9A-Fa-f:.]+\]?", name):
            raise ValueError("not a host name")
        if re.fullmatch(r"[^\[\]:]+:[0-9]+", name):
            raise ValueError("a host name with a port")
    return value


def existing_directory(value: Path | None) -> Path | None:
    if value is None:
        return None
    directory = value.expanduser()
    if not directory.is_dir():
        raise ValueError("no such directory")
    return directory


def existing_file(value: Path | None) -> Path | None:
    if value is None:
        return None
    file = value.expanduser()
    if not file.is_file():
        raise ValueError("no such file")
    return file


def slash_command(value: str) -> str:
    if not re.fullmatch(r"/[a-z0-9_-]{1,31}", value):
        raise ValueError("not a command")
    return value


def not_a_file(value: Path) -> Path:
    path = value.expanduser()
    if path.exists() and not path.is_dir():
        raise ValueError("a file is in the way")
    return path


def dns_server(value: str | None) -> str | None:
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


Flag = Annotated[bool, BeforeValidator(flag), Allowed(FLAG_VALUES)]
OptionalFlag = Annotated[bool | None, BeforeValidator(optional_flag), Allowed(FLAG_VALUES)]
OptionalAddress = Annotated[str | None, AfterValidator(http_address), Allowed("an http:// or https:// address")]
Address = Annotated[str, AfterValidator(http_address), Allowed("an http:// or https:// address")]
OptionalSecret = Annotated[
    SecretStr | None, AfterValidator(header_safe), Allowed("printable ASCII text without spaces or line breaks")
]

OptionalKey = Annotated[
    SecretStr | None,
    AfterValidator(header_safe),
    AfterValidator(long_enough),
    Allowed(f"at least {MIN_KEY_LENGTH} characters of printable ASCII text without spaces or line breaks"),
]


def setting(
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


def extra(info: FieldInfo) -> dict[str, Any]:
    extra = info.json_schema_extra
    if not isinstance(extra, dict):
        raise TypeError(f"{info!r} was not made by setting()")
    return extra


def allowed(info: FieldInfo) -> str:
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
