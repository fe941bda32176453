"""Settings of the store of the supervisor's conversations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, SecretStr

from ai_platform_engineering.settings.fields import (
    AllowedValues,
    Flag,
    OptionalPostgresAddress,
    SettingsGroup,
    StorageKind,
    lower,
    secret_url,
    setting,
)

CheckpointType = Literal["sqlite", "memory", "postgres", "mongodb", "redis"]

ADDRESS_VARIABLES: Final[Mapping[CheckpointType, str]] = MappingProxyType(
    {
        "postgres": "LANGGRAPH_CHECKPOINT_POSTGRES_DSN",
        "mongodb": "LANGGRAPH_CHECKPOINT_MONGODB_URI",
        "redis": "LANGGRAPH_CHECKPOINT_REDIS_URL",
    }
)
"""The variable with the address of each server, in the order in which an unset type is chosen."""


class ConversationSettings(SettingsGroup):
    conversations: StorageKind = setting(
        "Storage",
        "Where conversations are stored: `sqlite` in a file in `DATA_DIR`, `memory` until the server stops. A "
        "remote agent has a file of its own; the conversation of a delegation is in it until the delegation has "
        "ended.",
        "sqlite",
    )
    langgraph_checkpoint_type: Annotated[CheckpointType | None, BeforeValidator(lower)] = setting(
        "Storage",
        "Where the supervisor stores conversations: `sqlite` and `memory` as for `CONVERSATIONS`, or on a server.",
        shown_default="`memory` with `CONVERSATIONS=memory`; else the first of postgres, mongodb and redis whose "
        "address is set; else `sqlite`",
    )
    langgraph_checkpoint_postgres_dsn: OptionalPostgresAddress = setting(
        "Storage", "Postgres database for conversations."
    )
    langgraph_checkpoint_mongodb_uri: Annotated[
        SecretStr | None,
        AfterValidator(secret_url("mongodb", "mongodb+srv")),
        AllowedValues("a mongodb:// or mongodb+srv:// address"),
    ] = setting("Storage", "MongoDB server for conversations. The path names the database.")
    langgraph_checkpoint_redis_url: Annotated[
        SecretStr | None,
        AfterValidator(secret_url("redis", "rediss")),
        AllowedValues("a redis:// or rediss:// address"),
    ] = setting("Storage", "Redis server for conversations, with the JSON and Search modules (Redis 8 has them).")
    langgraph_checkpoint_ttl_minutes: float = setting(
        "Storage",
        "Minutes after which the supervisor deletes a conversation without new messages, also one with an open form. "
        "0 keeps conversations until their tasks are deleted.",
        0.0,
        ge=0,
    )
    require_persistence: Flag = setting(
        "Storage",
        "Stops the start of a server if conversations cannot be stored, and reports `/readyz` as not ready while the "
        "store is unavailable. Otherwise conversations are in memory meanwhile.",
        False,
    )

    @property
    def checkpoint_type(self) -> CheckpointType:
        """Where the supervisor's conversations are stored."""
        if self.langgraph_checkpoint_type is not None:
            return self.langgraph_checkpoint_type
        if self.conversations == "memory":
            return "memory"
        return next((kind for kind in ADDRESS_VARIABLES if self.checkpoint_address(kind)), "sqlite")

    def checkpoint_address(self, kind: CheckpointType) -> str | None:
        """The address of the server of this kind, with credentials; None if it is not set."""
        found: SecretStr | None = getattr(self, ADDRESS_VARIABLES[kind].lower())
        return found.get_secret_value() if found is not None else None
