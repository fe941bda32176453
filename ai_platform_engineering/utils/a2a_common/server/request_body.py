"""Reads a request's JSON: limited in size and depth, strict. Errors never contain the body."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NoReturn

from a2a.utils.errors import InvalidRequestError, JSONParseError
from starlette.requests import Request

MAX_DEPTH: Final = 64
"""More than any message needs, and well below the limits of parsers."""


class PayloadTooLargeError(InvalidRequestError):
    message = "Payload too large"


async def read_json(request: Request, limit: int) -> Any:
    """The JSON in the body of the request, which may have `limit` bytes."""
    return parse_json(await read_body(request, limit))


async def read_body(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise PayloadTooLargeError
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise PayloadTooLargeError
    return bytes(body)


def parse_json(body: bytes) -> Any:
    try:
        value = _decoder.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise JSONParseError(message="Parse error: the body is not UTF-8 text.") from None
    except RecursionError:
        raise JSONParseError(message="Parse error: the JSON is nested too deeply.") from None
    except ValueError:
        raise JSONParseError(message="Parse error: the body is not valid JSON.") from None
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _depth_exceeds(value, MAX_DEPTH):
        raise JSONParseError(message=f"Parse error: the JSON is nested more than {MAX_DEPTH} levels deep.")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("number out of range")
    return number


def _not_json(constant: str) -> NoReturn:
    raise ValueError("not a JSON value")


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_not_json)


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True
