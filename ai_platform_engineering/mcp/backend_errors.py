"""Errors of a backend that an MCP server passes on as an ordinary answer: a 401 body, `success: false`.

Pure functions over what a tool answered. Only the top level counts, and only an answer that is nothing but an error:
an answer about errors (log lines, an alert, the status of a website, `errors: []`) is data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

_MAX_PLAIN_LENGTH: Final = 600
"""Plain text longer than this is never taken for an error."""

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
"""Keys with which an error describes itself. Any other key with a value is data."""

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
"""What HTTP clients make of a refused request: `401 Unauthorized`, `Request failed with status code 403`."""


def backend_error(
    text: str, structured: Mapping[str, Any] | None = None, arguments: Mapping[str, Any] | None = None
) -> str | None:
    """Why the backend failed, for people; None if the answer is an answer.

    A value that repeats one of the call's `arguments` is no data of the backend.
    """
    value = _value(text, structured)
    if isinstance(value, Mapping):
        return _mapping_error(value, arguments or {})
    if isinstance(value, str):
        return _plain_error(value)
    return None


def reason_in(text: str) -> str:
    """The sentence for people in the text of an error: what it says of itself where it is JSON, else the text."""
    value = _value(text, None)
    return (_reason(value) if isinstance(value, Mapping) else None) or text


def is_empty(text: str) -> bool:
    """Whether the answer has nothing in it: an empty value, or lists that are all empty."""
    value = _value(text, None)
    if isinstance(value, Mapping):
        lists = [part for part in value.values() if isinstance(part, list)]
        return not value or (bool(lists) and not any(lists))
    return value is None or value == []


def _value(text: str, structured: Mapping[str, Any] | None) -> Any:
    """The JSON that was answered, out of the wrapping that FastMCP gives a value that is no object; else the text."""
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
    return reason if _says_error(answer, arguments) else None


def _is_only_error(answer: Mapping[str, Any], arguments: Mapping[str, Any], keys: frozenset[str] = _ERROR_KEYS) -> bool:
    repeated = [value for value in arguments.values() if isinstance(value, str | int)]
    return all(key in keys or value in (None, "", [], {}) or value in repeated for key, value in answer.items())


def _says_error(answer: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    match answer:
        case (
            {"ok": False}
            | {"isError": True}
            | {"is_error": True}
            | {"error": True}
            | {"errorMessages": [_, *_]}  # Atlassian
            | {"kind": "Status", "status": "Failure"}  # Kubernetes
            | {"data": _, "errors": [_, *_]}  # GraphQL; a list of errors alone may be what was asked for
        ):
            return True
        case {"error": str() | Mapping() as error} if error:
            return True
        case {"status": str(status)} if status.lower() == "error":
            # A log line or an alert has such a status too, and says more about itself.
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
