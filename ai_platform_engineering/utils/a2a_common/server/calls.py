"""The context of a call, for both bindings: caller, protocol version, extensions, the caller's last event."""

from __future__ import annotations

from typing import Any

from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.utils.constants import VERSION_HEADER
from a2a.utils.errors import VersionNotSupportedError
from starlette.requests import Request

from ai_platform_engineering.compat.a2a_v03 import LEGACY_HTTP_EXTENSION_HEADER
from ai_platform_engineering.identity.principal import CALLER, caller_in
from ai_platform_engineering.utils.a2a_common.codec.event_json import ProtocolVersion
from ai_platform_engineering.utils.a2a_common.server.request_handler import AFTER_SEQ, PROTOCOL


def call_context(request: Request, version: ProtocolVersion, after_seq: Any = None) -> ServerCallContext:
    """`after_seq` is the number of the caller's last event, for requests without the header Last-Event-ID."""
    headers = request.headers
    extensions = [*headers.getlist(HTTP_EXTENSION_HEADER), *headers.getlist(LEGACY_HTTP_EXTENSION_HEADER)]
    return ServerCallContext(
        state={
            "headers": dict(headers),
            CALLER: caller_in(request.scope.get("state")),
            PROTOCOL: version,
            AFTER_SEQ: headers.get("last-event-id", after_seq),
        },
        requested_extensions=get_requested_extensions(extensions),
    )


def check_version(request: Request, version: ProtocolVersion) -> None:
    """Check that the version header, if there is one, matches the version of the method or path."""
    stated = request.headers.get(VERSION_HEADER, "").strip()
    if stated and stated.split(".", 1)[0] != version.split(".", 1)[0]:
        raise VersionNotSupportedError(
            message=f"The method or path belongs to protocol {version}, but {VERSION_HEADER} names another version."
        )
