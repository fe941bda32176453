"""A Redis server: its client, its place and its errors."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)

from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.storage.servers.errors import StoreError, connection_check

REDIS_ERRORS: Final = (RedisError, OSError)

_CONNECT_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 10.0


def redis_client(url: str) -> Redis:
    return Redis.from_url(
        url,
        socket_connect_timeout=_CONNECT_SECONDS,
        socket_timeout=_ANSWER_SECONDS,
        health_check_interval=30,
        retry=Retry(NoBackoff(), 1),
    )


def redis_place(url: str, setting: str) -> str:
    """Host and port of the address, without credentials. Raises if the address cannot be parsed."""
    try:
        parts = urlsplit(url)
        port = parts.port or 6379
    except ValueError:
        port = 0
    if not port or not parts.hostname or "@" in parts.path:
        raise SettingsError(
            f"{setting} is not the address of a Redis server: it has to look like redis://user:password@host:6379/0, "
            "with characters such as @ / : in the password percent-encoded."
        )
    return f"{parts.hostname}:{port}{parts.path.rstrip('/')}"


def redis_error(error: BaseException, setting: str) -> StoreError:
    match error:
        case AuthenticationError() | AuthorizationError():
            reason, way_out = "it refused the user or the password", connection_check(setting)
        case NoPermissionError():
            reason, way_out = "the user lacks a permission", f"Grant it, or name another user in {setting}."
        case BusyLoadingError():
            reason, way_out = "it is loading its data", ""
        case RedisTimeoutError():
            reason, way_out = "it did not answer in time", connection_check(setting)
        case RedisConnectionError() | OSError():
            reason, way_out = "the connection failed", connection_check(setting)
        case ResponseError():
            reason, way_out = str(error), ""
        case _:
            reason, way_out = type(error).__name__, ""
    return StoreError(reason, way_out)
