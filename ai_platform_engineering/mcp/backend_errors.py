"""Detection of backend errors that an MCP server returns as a normal result: a 401 body, `success: false`.

Pure functions over the result of a tool. Only the top level counts, and only a result that is nothing but an error. A
result about errors (log lines, an alert, the status of a website, `errors: []`) is data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

_MAX_PLAIN_LENGTH: Final = 600
"""Longer plain text is never treated as an error."""

_STATUS_KEYS: Final = ("status", "statusCode", "status_code", "http_status", "httpStatus", "code")
_REASON_KEYS: Final = (
    "error",
    "error_description",
    "errorMessage",
    "error_message",
    "errorMessages",
    "message",
    "msg",
    "detail",
    "details",
    "title",
    "reason",
    "errors",
)
_ERROR_KEYS: Final = frozenset(
    {
        *_STATUS_KEYS,
        *_REASON_KEYS,
        *("success", "ok", "isError", "is_error", "type", "kind", "apiVersion", "instance", "path", "timestamp"),
        *("request_id", "requestId", "trace_id", "traceId", "error_code", "errorCode", "documentation_url", "hint"),
        *("temporary", "retry_after_seconds", "retryAfter", "server_version"),
    }
)
"""Keys of an error description. Any other key with a value is data."""

_JSEND_KEYS: Final = frozenset({"status", "message", "code", "data", "error", "errors", "detail", "details", "reason"})
_STATUS: Final = "(?:" + "|".join(f"{s.value}:? {re.escape(s.phrase)}" for s in HTTPStatus if s.value >= 400) + ")"
_PLAIN_FORMS: Final = tuple(
    re.compile(form, re.IGNORECASE | re.DOTALL)
    for form in (
        rf"(?:(?:\w+ ){{0,3}}error:? ?|HTTP(?: error)? )?{_STATUS}\.?(?:\s*[-:\n]+\s*\{{.*\}})?",
        r"(?:\w*error: )?request failed with status(?: code)? [45]\d\d\.?",
        r"(?:\w*error: )?[45]\d\d (?:client|server) error: [\w ]{2,40} for url: \S+",
        rf"(?:\w*error: )?(?:client|server) error '{_STATUS}' for url '\S+'(?:\s*for more information.*)?",
        r"HTTP status(?: code)?:? [45]\d\d\.?",
        r"(?:error: )?(?:unauthorized|unauthenticated|forbidden|(?:access|permission) denied|invalid credentials)\.?",
    )
)
"""Error messages of HTTP clients: `401 Unauthorized`, `Request failed with status code 403`."""


def backend_error(
    text: str, structured: Mapping[str, Any] | None = None, arguments: Mapping[str, Any] | None = None
) -> str | None:
    """The error message for people; None if the result is not an error.

    A value that repeats one of the call's `arguments` is not data of the backend.
    """
    value = _value(text, structured)
    if isinstance(value, Mapping):
        return _mapping_error(value, arguments or {})
    if isinstance(value, str):
        return _plain_error(value)
    return None


def reason_in(text: str) -> str:
    """The error message for people in the text of an error: the message inside of JSON, or the text itself."""
    value = _value(text, None)
    return (_reason(value) if isinstance(value, Mapping) else None) or text


def is_empty(text: str) -> bool:
    """Whether the result is an empty value, or an object with only empty lists."""
    value = _value(text, None)
    if isinstance(value, Mapping):
        lists = [part for part in value.values() if isinstance(part, list)]
        return not value or (bool(lists) and not any(lists))
    return value is None or value == []


def _value(text: str, structured: Mapping[str, Any] | None) -> Any:
    """The JSON value of the result, or its text. FastMCP wraps a value that is not an object in `result`."""
    value: Any = structured if structured is not None else _json(text)
    match value:
        case {"result": wrapped} if len(value) == 1:
            return _json(wrapped) if isinstance(wrapped, str) else wrapped
        case _:
            return value


def _json(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[", "null")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _mapping_error(answer: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    reason = _reason(answer)
    if answer.get("success") is False:
        return reason or "The tool reports that it did not succeed."
    if reason is None or not _is_only_error(answer, arguments):
        return None
    return reason if _has_error_marker(answer, arguments) else None


def _is_only_error(answer: Mapping[str, Any], arguments: Mapping[str, Any], keys: frozenset[str] = _ERROR_KEYS) -> bool:
    repeated = [value for value in arguments.values() if isinstance(value, str | int)]
    return all(key in keys or value in (None, "", [], {}) or value in repeated for key, value in answer.items())


def _has_error_marker(answer: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    match answer:
        case (
            {"ok": False}
            | {"isError": True}
            | {"is_error": True}
            | {"error": True}
            | {"errorMessages": [_, *_]}  # Atlassian
            | {"kind": "Status", "status": "Failure"}  # Kubernetes
            | {"data": _, "errors": [_, *_]}  # GraphQL; a list of errors alone may be the requested data
        ):
            return True
        case {"error": str() | Mapping() as error} if error:
            return True
        case {"status": str(status)} if status.lower() == "error":
            # A log line or an alert may have this status too, but has more keys.
            return _is_only_error(answer, arguments, _JSEND_KEYS)
    if any(_is_http_error(answer.get(key)) for key in _STATUS_KEYS):
        return True
    return any(isinstance(said := answer.get(key), str) and _plain_error(said) for key in ("message", "msg", "detail"))


def _is_http_error(value: Any) -> bool:
    return not isinstance(value, bool) and re.fullmatch(r"[45]\d\d", str(value)) is not None


def _plain_error(text: str) -> str | None:
    text = text.strip()
    if len(text) > _MAX_PLAIN_LENGTH:
        return None
    return text if any(form.fullmatch(text) for form in _PLAIN_FORMS) else None


def _reason(answer: Mapping[str, Any]) -> str | None:
    return next((reason for key in _REASON_KEYS if (reason := _sentence(answer.get(key)))), None)


def _sentence(value: Any) -> str | None:
    match value:
        case str():
            return value.strip() or None
        case [first, *_]:
            return _sentence(first)
        case Mapping():
            return _reason(value)
        case _:
            return None
