"""Types of command-line arguments: each parses a text or raises an error with the allowed values."""

from __future__ import annotations

import argparse
import ipaddress
import math
import re
from datetime import UTC, datetime
from urllib.parse import urlsplit


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; use a number from 0 to 65535")
    return int(text)


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid number; use a whole number from 1")
    return int(text)


def depth(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 2):
        raise argparse.ArgumentTypeError(f"{text!r} is not a depth; use a whole number from 0 to 99")
    return int(text)


def answer(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is not an answer; use NAME=VALUE")
    return name.strip(), value


def url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is not an http:// or https:// address")
    return text


def address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IP address") from None


def moment(text: str) -> datetime:
    """A date or time, in UTC unless it has an offset."""
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; use 2026-03-01 or 2026-03-01T12:00") from None
    return given.replace(tzinfo=UTC) if given.tzinfo is None else given.astimezone(UTC)


def head(text: str) -> tuple[int, str]:
    """The head of an audit record, `SEQ:HASH`."""
    if re.fullmatch(r"[1-9][0-9]{0,17}:[0-9a-f]{64}", text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a head; use SEQ:HASH as `audit verify` prints it")
    seq, _, entry_hash = text.partition(":")
    return int(seq), entry_hash


def speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speed; use a number above 0")
    return speed
