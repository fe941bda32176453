"""JSON-RPC of both protocol versions at one address; the name of the method determines the version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.utils.errors import A2AError, InvalidParamsError, InvalidRequestError, MethodNotFoundError
from google.protobuf.message import Message as ProtoMessage
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ai_platform_engineering.storage.event_log.event_log import Entry, Snapshot
from ai_platform_engineering.utils.a2a_common.codec.event_json import Json, ProtocolVersion, dumps
from ai_platform_engineering.utils.a2a_common.server.calls import call_context, check_version
from ai_platform_engineering.utils.a2a_common.server.jsonrpc_methods import METHODS, Method
from ai_platform_engineering.utils.a2a_common.server.public_errors import invalid_params, jsonrpc_error, public_error
from ai_platform_engineering.utils.a2a_common.server.request_body import read_json
from ai_platform_engineering.utils.a2a_common.server.request_handler import LogRequestHandler
from ai_platform_engineering.utils.a2a_common.server.sse import event_stream, frame, item_json

RequestId = str | int | None


@dataclass(frozen=True, slots=True)
class Envelope:
    id: RequestId
    method: str
    params: Any


class JsonRpc:
    """The JSON-RPC endpoint."""

    def __init__(self, handler: LogRequestHandler, max_request_bytes: int) -> None:
        self._handler = handler
        self._max_request_bytes = max_request_bytes

    async def handle(self, request: Request) -> Response:
        request_id: RequestId = None
        version: ProtocolVersion | None = None
        try:
            body = await read_json(request, self._max_request_bytes)
            request_id = request_id_of(body)
            envelope = open_envelope(body, request_id)
            method = METHODS.get(envelope.method)
            if method is None:
                raise MethodNotFoundError
            version = method.version
            check_version(request, version)
            params = read_params(method, envelope)
            context = call_context(request, version, after_seq=_after_seq(envelope, version))
            context.tenant = getattr(params, "tenant", "")
            if method.write is None:
                return await self._stream(request, request_id, method, params, context)
            result = await getattr(self._handler, method.call)(params, context)
            return _json({"jsonrpc": "2.0", "id": request_id, "result": method.write(result, params)})
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            return _json(jsonrpc_error(public_error(error), request_id, version))

    async def _stream(
        self, request: Request, request_id: RequestId, method: Method, params: ProtoMessage, context: ServerCallContext
    ) -> Response:
        version = method.version
        prefix = b'{"jsonrpc":"2.0","id":%s,"result":' % dumps(request_id)

        def data(item: Snapshot | Entry) -> bytes:
            return b"%s%s}" % (prefix, item_json(item, version))

        def failure(error: Exception) -> bytes:
            body = dumps(jsonrpc_error(public_error(error), request_id, version))
            return frame(body, event="error" if version == "1.0" else None)

        items = aiter(getattr(self._handler, method.call)(params, context))
        try:
            first = await anext(items)
        except A2AError as error:
            # A 0.3 client that requested a stream treats any other response as a broken one.
            if version == "0.3" and "text/event-stream" in request.headers.get("accept", ""):
                return Response(failure(error), media_type="text/event-stream")
            raise
        return event_stream(first, items, data, failure, self._handler.streams)


def request_id_of(body: Any) -> RequestId:
    """The id for the response; None if the request has none that JSON-RPC allows."""
    match body:
        case {"id": str(text)} if _is_unicode(text):
            return text
        case {"id": int(number)} if not isinstance(number, bool):
            return number
        case _:
            return None


def open_envelope(body: Any, request_id: RequestId) -> Envelope:
    """Validate the envelope of a request. A missing `jsonrpc` is accepted, a wrong one is not."""
    if not isinstance(body, dict):
        raise InvalidRequestError(message="Invalid request: one JSON object is expected; batches are not supported.")
    if request_id is None and body.get("id") is not None:
        raise InvalidRequestError(message="Invalid request: id must be a string, an integer or null.")
    if body.get("jsonrpc", "2.0") != "2.0":
        raise InvalidRequestError(message='Invalid request: jsonrpc must be "2.0".')
    method = body.get("method")
    if not isinstance(method, str) or not method:
        raise InvalidRequestError(message="Invalid request: method must be a string.")
    return Envelope(request_id, method, body.get("params"))


def read_params(method: Method, envelope: Envelope) -> ProtoMessage:
    params = {} if envelope.params is None else envelope.params
    if not isinstance(params, dict):
        raise InvalidParamsError(message="params: must be an object")
    try:
        return method.read(params)
    except Exception as error:
        raise invalid_params(error, "params") from None


def _after_seq(envelope: Envelope, version: ProtocolVersion) -> Any:
    """`metadata.after_seq` of a 0.3 request, read here because the SDK's 0.3 layer drops that metadata."""
    match envelope.params:
        case {"metadata": {"after_seq": after_seq}} if version == "0.3":
            return after_seq
        case _:
            return None


def _json(body: Json) -> Response:
    return Response(dumps(body), media_type="application/json")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
