"""A MongoDB server: its client, its place and its errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bson.errors import BSONError
from pymongo import MongoClient
from pymongo.errors import (
    ConfigurationError,
    ConnectionFailure,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.uri_parser import parse_uri

from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.storage.servers.errors import StoreError, connection_check

# A value that is too large for a document raises an error of BSON.
MONGODB_ERRORS: Final = (PyMongoError, BSONError, OSError)
DATABASE: Final = "checkpointing_db"
"""The database of an address without one."""

_DEFAULTS: Final[dict[str, Any]] = {
    "appName": "platform-engineer",
    "serverSelectionTimeoutMS": 3_000,
    "connectTimeoutMS": 3_000,
    "timeoutMS": 10_000,
}
_AUTHENTICATION_FAILED: Final = 18
_UNAUTHORIZED: Final = 13


def mongodb_client(uri: str) -> MongoClient[dict[str, Any]]:
    """A client that connects when it is first used. Its methods block: call them in a thread.

    Options in the address replace our defaults.
    """
    given = {name.lower() for name in _parsed(uri)["options"]}
    options = {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}
    return MongoClient(uri, connect=False, tz_aware=True, **options)


def mongodb_place(uri: str, setting: str) -> str:
    """Hosts and database of the address, without credentials. Raises if the address cannot be parsed."""
    try:
        parsed = _parsed(uri)
    except (InvalidURI, ConfigurationError, ValueError):
        raise SettingsError(
            f"{setting} is not the address of a MongoDB server: it has to look like "
            "mongodb://user:password@host:27017/database, with characters such as @ / : in the password "
            "percent-encoded."
        ) from None
    hosts = ",".join(host if port is None else f"{host}:{port}" for host, port in parsed["nodelist"])
    return f"{hosts}/{parsed['database'] or DATABASE}"


def _parsed(uri: str) -> Mapping[str, Any]:
    # Parsing a mongodb+srv address looks up names, which the client does when it connects.
    return parse_uri(uri.replace("mongodb+srv://", "mongodb://", 1), validate=False, warn=False)


def mongodb_error(error: Exception, setting: str) -> StoreError:
    match error:
        case OperationFailure(code=code) if code == _AUTHENTICATION_FAILED:
            reason, way_out = "it refused the user or the password", connection_check(setting)
        case OperationFailure(code=code) if code == _UNAUTHORIZED:
            reason, way_out = "the user lacks a permission", f"Grant it, or name another user in {setting}."
        case OperationFailure(details={"errmsg": str(message)}):
            reason, way_out = message, ""
        case ServerSelectionTimeoutError():
            reason, way_out = "no server that accepts writes could be reached", connection_check(setting)
        case ConnectionFailure():
            reason, way_out = "the connection failed", connection_check(setting)
        case BSONError():
            reason, way_out = str(error), ""
        case _:
            reason, way_out = type(error).__name__, ""
    return StoreError(reason, way_out)
