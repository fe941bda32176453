"""What every call carries along, whatever its binding: who speaks which protocol, and what the caller has seen."""

from __future__ import annotations

from typing import Any

from a2a.compat.v0_3.extension_headers import LEGACY_HTTP_EXTENSION_HEADER
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.utils.constants import VERSION_HEADER
from a2a.utils.errors import VersionNotSupportedError
from starlette.requests import Request

from ai_platform_engineering.utils.a2a_common.caller import CALLER, caller_in
from ai_platform_engineering.utils.a2a_common.codec.event_json import ProtocolVersion
from ai_platform_engineering.utils.a2a_common.server.request_handler import AFTER_SEQ, PROTOCOL


def call_context(request: Request, version: ProtocolVersion, seen: Any = None) -> ServerCallContext:
    """The context of a call. `seen` is the number of the last event the caller has, if the header does not say it."""
    headers = request.headers
    extensions = [*headers.getlist(HTTP_EXTENSION_HEADER), *headers.getlist(LEGACY_HTTP_EXTENSION_HEADER)]
    return ServerCallContext(
        state={
            "headers": dict(headers),
            CALLER: caller_in(request.scope.get("state")),
            PROTOCOL: version,
            AFTER_SEQ: headers.get("last-event-id", seen),
        },
        requested_extensions=get_requested_extensions(extensions),
    )


def check_version(request: Request, version: ProtocolVersion) -> None:
    """The header, where it is sent, has to agree with the method or path that was called."""
    stated = request.headers.get(VERSION_HEADER, "").strip()
    if stated and stated.split(".", 1)[0] != version.split(".", 1)[0]:
        raise VersionNotSupportedError(
            message=f"What was called belongs to protocol {version}, which is not what {VERSION_HEADER} says."
        )
