"""Types of settings: parsing and validation of values, and the text that describes the allowed values."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

Group = Literal[
    "Server",
    "Sign-in",
    "Placement",
    "Model",
    "Graph",
    "Approvals",
    "Audit",
    "MCP",
    "Knowledge base",
    "Skills",
    "Sandbox",
    "Storage",
    "Memories",
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
class AllowedValues:
    """Describes the allowed values of a setting whose type and bounds do not say enough."""

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
    _ = parts.port  # raises ValueError if it is not a port number
    return value


def http_addresses(value: str) -> str:
    """A comma-separated list of addresses."""
    for address in value.split(","):
        if address.strip():
            http_address(address.strip())
    return value


def is_loopback_host(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_secure_address(value: str) -> bool:
    """Whether a connection to the address is protected: https, or http on this machine."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    return host != "" and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback_host(host)))


def secure_address(value: str | None) -> str | None:
    if value is not None and not is_secure_address(value):
        raise ValueError("not an https address")
    return value


def secret_url(*schemes: str) -> Callable[[SecretStr | None], SecretStr | None]:
    """A validator for addresses with one of the `schemes`, which may contain a password."""

    def check(value: SecretStr | None) -> SecretStr | None:
        if value is not None and urlsplit(value.get_secret_value()).scheme not in schemes:
            raise ValueError("an address with another scheme")
        return value

    return check


def header_safe(value: SecretStr | None) -> SecretStr | None:
    # Secrets are sent in HTTP headers, where a line break or a space would end the value.
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


def networks(value: str) -> str:
    for part in filter(None, map(str.strip, value.split(","))):
        if part != "*":
            ipaddress.ip_network(part)
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
        raise ValueError("a file, not a directory")
    return path


def not_a_directory(value: Path) -> Path:
    path = value.expanduser()
    if path.is_dir():
        raise ValueError("a directory, not a file")
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
    """Split `10.0.0.2`, `10.0.0.2:5353`, `fd00::2` or `[fd00::2]:5353` into address and port."""
    if bracketed := re.fullmatch(r"\[([^\]]*)\](?::(\d+))?", value):
        return bracketed[1], bracketed[2]
    if value.count(":") == 1:
        host, port = value.split(":")
        return host, port
    return value, None


Flag = Annotated[bool, BeforeValidator(flag), AllowedValues(FLAG_VALUES)]
OptionalFlag = Annotated[bool | None, BeforeValidator(optional_flag), AllowedValues(FLAG_VALUES)]
OptionalAddress = Annotated[str | None, AfterValidator(http_address), AllowedValues("an http:// or https:// address")]
Address = Annotated[str, AfterValidator(http_address), AllowedValues("an http:// or https:// address")]
OptionalSecureAddress = Annotated[
    str | None,
    AfterValidator(secure_address),
    AllowedValues("an https:// address, or an http:// address of this machine"),
]
OptionalSecret = Annotated[
    SecretStr | None, AfterValidator(header_safe), AllowedValues("printable ASCII text without spaces or line breaks")
]
OptionalDirectory = Annotated[
    Path | None, AfterValidator(existing_directory), AllowedValues("the path of an existing directory")
]
OptionalPostgresAddress = Annotated[
    SecretStr | None, AfterValidator(secret_url("postgresql", "postgres")), AllowedValues("a postgresql:// address")
]
StorageKind = Annotated[Literal["sqlite", "memory"], BeforeValidator(lower)]
OptionalKey = Annotated[
    SecretStr | None,
    AfterValidator(header_safe),
    AfterValidator(long_enough),
    AllowedValues(f"at least {MIN_KEY_LENGTH} characters of printable ASCII text without spaces or line breaks"),
]


class SettingsGroup(BaseSettings):
    """Base class of settings. The field `a2a_port` is the variable `A2A_PORT`."""

    # The schema is built for the class with all settings only.
    model_config = SettingsConfigDict(
        alias_generator=str.upper,
        validate_by_name=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # load_settings merges file and environment itself, because per-agent variables are read from the merged values.
        return (init_settings,)


def setting(
    group: Group,
    description: str,
    default: Any = None,
    *,
    shown_default: str | None = None,
    fallback: str | None = None,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
) -> Any:
    """Declare a setting. `fallback` is another variable that is read when this one is not set."""
    return Field(
        default,
        description=description,
        json_schema_extra={"group": group, "shown_default": shown_default, "fallback": fallback},
        ge=ge,
        gt=gt,
        le=le,
    )


def field_extra(info: FieldInfo) -> dict[str, Any]:
    """The values that `setting` stored with the field: `group`, `shown_default`, `fallback`."""
    extra = info.json_schema_extra
    if not isinstance(extra, dict):
        raise TypeError(f"{info!r} was not declared with setting()")
    return extra


def describe_allowed(info: FieldInfo) -> str:
    """The allowed values as text, for the configuration page and error messages."""
    for item in info.metadata:
        if isinstance(item, AllowedValues):
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
