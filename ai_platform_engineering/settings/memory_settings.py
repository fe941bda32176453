"""Settings of the store of memories: what people ask the supervisor to remember."""

from __future__ import annotations

from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, SecretStr

from ai_platform_engineering.settings.conversation_settings import ADDRESS_VARIABLES, CheckpointType
from ai_platform_engineering.settings.fields import (
    AllowedValues,
    OptionalPostgresAddress,
    SettingsGroup,
    lower,
    secret_url,
    setting,
)

MemoryStoreType = CheckpointType
MemoryServer = Literal["postgres", "mongodb", "redis"]
MEMORY_SERVERS: Final[tuple[MemoryServer, ...]] = get_args(MemoryServer)


class MemorySettings(SettingsGroup):
    langgraph_store_type: Annotated[MemoryStoreType | None, BeforeValidator(lower)] = setting(
        "Memories",
        "Where the supervisor stores memories, which are what people ask it to remember: `sqlite` in a file in "
        "`DATA_DIR`, `memory` until the server stops, or on a server.",
        shown_default="memories are off",
    )
    langgraph_store_postgres_dsn: OptionalPostgresAddress = setting(
        "Memories",
        "Postgres database for memories.",
        shown_default="`LANGGRAPH_CHECKPOINT_POSTGRES_DSN`",
    )
    langgraph_store_mongodb_uri: Annotated[
        SecretStr | None,
        AfterValidator(secret_url("mongodb", "mongodb+srv")),
        AllowedValues("a mongodb:// or mongodb+srv:// address"),
    ] = setting(
        "Memories",
        "MongoDB server for memories. The path names the database.",
        shown_default="`LANGGRAPH_CHECKPOINT_MONGODB_URI`",
    )
    langgraph_store_redis_url: Annotated[
        SecretStr | None,
        AfterValidator(secret_url("redis", "rediss")),
        AllowedValues("a redis:// or rediss:// address"),
    ] = setting("Memories", "Redis server for memories.", shown_default="`LANGGRAPH_CHECKPOINT_REDIS_URL`")
    langgraph_store_ttl_minutes: float = setting(
        "Memories",
        "Minutes after which a memory is deleted. 0 keeps memories until they are forgotten.",
        0.0,
        ge=0,
        le=52_560_000,
    )

    def memory_variables(self, server: MemoryServer) -> tuple[str, str]:
        """The variables that may have the address of the server, in the order in which they are used."""
        checkpoints = ADDRESS_VARIABLES[server]
        return checkpoints.replace("CHECKPOINT", "STORE"), checkpoints

    def memory_address(self, server: MemoryServer) -> tuple[str, str] | None:
        """The variable with the address of the server and its value, with credentials; None if none is set."""
        for variable in self.memory_variables(server):
            address: SecretStr | None = getattr(self, variable.lower())
            if address is not None:
                return variable, address.get_secret_value()
        return None
