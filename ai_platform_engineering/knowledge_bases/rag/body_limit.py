"""How large the body of a request may be: by its header, or when more has come than that."""

from __future__ import annotations

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ai_platform_engineering.settings import Settings


class BodyLimit:
    """What is uploaded with PUT is a document and may be as large as a web page; all else is JSON."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._document = settings.fetch_url_max_bytes
        self._json = settings.max_request_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_document = scope["method"] == "PUT"
        limit = self._document if is_document else self._json
        variable = "FETCH_URL_MAX_BYTES" if is_document else "MAX_REQUEST_BYTES"
        too_large = HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {limit} bytes; {variable} sets the limit."
        )
        length = Headers(scope=scope).get("content-length", "")
        declared = int(length) if length.isdecimal() and len(length) < 19 else 0
        received = 0

        async def limited() -> Message:
            nonlocal received
            if declared > limit:
                raise too_large
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise too_large
            return message

        await self._app(scope, limited, send)
