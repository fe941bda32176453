"""REST of both protocol versions: 0.3 under `/v1`, 1.0 at the root."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from a2a.utils.errors import InvalidParamsError
from google.protobuf.message import Message as ProtoMessage
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ai_platform_engineering.storage.event_log.event_log import Entry, Snapshot
from ai_platform_engineering.utils.a2a_common.codec.event_json import Json, dumps
from ai_platform_engineering.utils.a2a_common.server.calls import call_context, check_version
from ai_platform_engineering.utils.a2a_common.server.public_errors import invalid_params, public_error, rest_error
from ai_platform_engineering.utils.a2a_common.server.request_body import read_json
from ai_platform_engineering.utils.a2a_common.server.request_handler import LogRequestHandler
from ai_platform_engineering.utils.a2a_common.server.rest_resources import RESOURCES, Resource, stream_item
from ai_platform_engineering.utils.a2a_common.server.sse import event_stream, frame

MEDIA_TYPES = {"0.3": "application/json", "1.0": "application/a2a+json"}


def rest_routes(handler: LogRequestHandler, max_request_bytes: int) -> list[BaseRoute]:
    """The routes of all resources. Apps that are mounted after them get every other path."""
    return [
        Route(resource.path, _Endpoint(handler, resource, max_request_bytes).handle, methods=[resource.verb])
        for resource in RESOURCES
    ]


@dataclass(frozen=True, slots=True)
class _Endpoint:
    handler: LogRequestHandler
    resource: Resource
    max_request_bytes: int

    async def handle(self, request: Request) -> Response:
        resource = self.resource
        try:
            check_version(request, resource.version)
            params = await self._params(request)
            context = call_context(request, resource.version)
            call = getattr(self.handler, resource.call)
            if resource.write is None:
                return await self._stream(aiter(call(params, context)))
            return self._answer(200, resource.write(await call(params, context), params))
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return self._answer(*rest_error(public_error(error), resource.version))

    async def _params(self, request: Request) -> ProtoMessage:
        body: Any = {}
        if self.resource.has_body:
            body = await read_json(request, self.max_request_bytes)
            if not isinstance(body, dict):
                raise InvalidParamsError(message="body: must be an object")
        try:
            return self.resource.read(body, request.path_params, request.query_params)
        except Exception as error:
            raise invalid_params(error, "body" if self.resource.has_body else "query") from None

    async def _stream(self, items: AsyncIterator[Sequence[Snapshot | Entry]]) -> Response:
        version = self.resource.version

        def failure(error: Exception) -> bytes:
            return frame(dumps(rest_error(public_error(error), version)[1]), event="error")

        def data(item: Snapshot | Entry) -> bytes:
            return dumps(stream_item(item, version))

        return event_stream(await anext(items), items, data, failure, self.handler.streams)

    def _answer(self, code: int, body: Json) -> Response:
        media_type = MEDIA_TYPES[self.resource.version] if code == 200 else "application/json"
        return Response(dumps(body), status_code=code, media_type=media_type)
