"""Errors as callers see them: the codes of the protocol and our own sentences.

They never contain the caller's input or the text of an exception.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final
from uuid import uuid4

from a2a.types import a2a_pb2
from a2a.utils.error_handlers import build_error_details
from a2a.utils.errors import (
    A2A_ERROR_MAPPING,
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    InternalError,
    InvalidAgentResponseError,
    InvalidParamsError,
    InvalidRequestError,
    JSONParseError,
)
from google.protobuf.json_format import ParseError
from pydantic import BaseModel, ValidationError

from ai_platform_engineering.compat.a2a_v03 import types_v03
from ai_platform_engineering.storage.event_log.log_errors import LogReadError, LogWriteError
from ai_platform_engineering.utils.a2a_common.codec.event_json import Json, ProtocolVersion
from ai_platform_engineering.utils.a2a_common.server.request_body import PayloadTooLargeError
from ai_platform_engineering.utils.a2a_common.server.request_handler import BudgetError, ServerStoppingError

logger = logging.getLogger(__name__)


class LogUnavailableError(InternalError):
    """Tasks cannot be stored or read now."""


_INTERNAL: Final = (InternalError, InvalidAgentResponseError)
_HTTP_CODES: Final = {PayloadTooLargeError: 413, BudgetError: 429, ServerStoppingError: 503, LogUnavailableError: 503}
_BAD_REQUEST: Final = A2A_ERROR_MAPPING[InvalidRequestError]


def public_error(error: Exception) -> A2AError:
    """The error for the caller. An internal error is logged with a reference, and the caller gets only that."""
    if isinstance(error, A2AError) and not isinstance(error, _INTERNAL):
        return _with_hint(error) if isinstance(error, InvalidParamsError) else error
    if isinstance(error, LogWriteError | LogReadError):
        return LogUnavailableError(message=str(error))
    reference = uuid4().hex[:12]
    logger.error("request failed (reference %s)", reference, exc_info=error)
    return InternalError(message=f"Internal error. The server's log has the cause under {reference}.")


def invalid_params(error: Exception, root: str) -> InvalidParamsError:
    """The error for parameters that cannot be parsed; it names the place with the names of the schema."""
    match error:
        case ValidationError():
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            problem = _PROBLEMS.get(first["type"], "not valid")
            return InvalidParamsError(message=f"{_path((), first['loc']) or root}: {problem}")
        case ParseError():
            return InvalidParamsError(message=f"{_path((root,), _fields_named_by(error))}: not valid")
        case _:
            return InvalidParamsError(message=f"{root}: not valid")


def jsonrpc_error(error: A2AError, request_id: str | int | None, version: ProtocolVersion | None) -> Json:
    body: Json = {"code": _of_kind(JSON_RPC_ERROR_CODE_MAP, error, -32603), "message": error.message}
    if version == "1.0":
        body["data"] = build_error_details(error)
    return {"jsonrpc": "2.0", "id": request_id, "error": body}


def rest_error(error: A2AError, version: ProtocolVersion) -> tuple[int, Json]:
    """Status code and body. 0.3 clients expect the error's type at the top level."""
    mapping = _BAD_REQUEST if isinstance(error, JSONParseError) else _of_kind(A2A_ERROR_MAPPING, error, _BAD_REQUEST)
    code = _HTTP_CODES.get(type(error), mapping.http_code)
    body: Json = {
        "error": {
            "code": code,
            "status": mapping.grpc_status,
            "message": error.message,
            "details": build_error_details(error),
        }
    }
    if version == "0.3":
        body |= {"type": type(error).__name__, "message": error.message}
    return code, body


def _of_kind(table: dict[type[A2AError], Any], error: A2AError, default: Any) -> Any:
    return next((table[kind] for kind in type(error).__mro__ if kind in table), default)


def _with_hint(error: InvalidParamsError) -> InvalidParamsError:
    """The error with the first missing field in its message: the SDK lists the fields in `data` only."""
    match error.data:
        case {"errors": [{"field": str(field), "message": str(message)}, *_]}:
            return InvalidParamsError(message=f"{_camel(field)}: {message}")
        case _:
            return InvalidParamsError(message=error.message)


_PROBLEMS: Final = {
    "missing": "field required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "enum": "not one of the values allowed",
    "literal_error": "not one of the values allowed",
}


def _camel(path: str) -> str:
    head, *rest = path.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _schema_names() -> frozenset[str]:
    names = set()
    for model in vars(types_v03).values():
        if isinstance(model, type) and issubclass(model, BaseModel):
            names |= {field.alias or name for name, field in model.model_fields.items()}
    for message in a2a_pb2.DESCRIPTOR.message_types_by_name.values():
        names |= {field.json_name for field in message.fields}
    return frozenset(names)


_NAMES: Final = _schema_names()


def _path(start: tuple[str, ...], steps: Iterable[int | str]) -> str:
    """The path up to the first name that is not in the schema: the rest may be the caller's input."""
    path = ".".join(start)
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step in _NAMES:
            path += f".{step}" if path else step
        else:
            break
    return path


def _fields_named_by(error: ParseError) -> list[str]:
    words = str(error).split("Failed to parse ")[1:]
    return [word.split(" ", 1)[0] for word in words]
