"""What came of one call to Slack's Web API, told apart by whether it was done."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import ClientConnectorError, ClientHttpProxyError, ConnectionTimeoutError, InvalidURL
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from ai_platform_engineering.integrations.slack_bot.web_api.refusals import PASSING, TOO_MANY, UNSURE

_RETRY_AFTER: Final = 10.0
"""Seconds, where Slack does not say how many."""


@dataclass(frozen=True, slots=True)
class Done:
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declined:
    """It was not done. `needed` is a scope that the token lacks, `hints` say what is wrong with the arguments."""

    error: str
    needed: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TooMany:
    """It was not done; Slack wants to be left alone for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Unsent:
    """It was not done: Slack could not be reached, or is not open for business."""

    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """It may have been done: there was no answer, or none that says."""

    reason: str


Outcome = Done | Declined | TooMany | Unsent | Lost


async def outcome_of(call: Awaitable[AsyncSlackResponse]) -> Outcome:
    try:
        response = await call
    except SlackApiError as error:
        return outcome_of_error(error)
    except (ClientConnectorError, ClientHttpProxyError, ConnectionTimeoutError, InvalidURL) as error:
        return Unsent(type(error).__name__)
    except SlackClientError as error:
        return Declined(type(error).__name__)
    except Exception as error:
        # Among them what slack_sdk stumbles over when something on the way answers in Slack's place.
        return Lost(type(error).__name__)
    return Done(response.data) if isinstance(response.data, dict) else Lost("unreadable")


def outcome_of_error(error: SlackApiError) -> Outcome:
    """What Slack's answer says that slack_sdk has raised."""
    return _of_response(error.response)


def of_status(status: int, headers: Mapping[str, str]) -> Outcome:
    """What an HTTP status says by itself."""
    if status == 429:
        return TooMany(_retry_after(headers))
    if status >= 500 or status == 200:
        return Lost(f"http_{status}")
    return Declined(f"http_{status}")


def _of_response(response: Any) -> Outcome:
    # An answer that cannot be parsed comes as aiohttp's response, which has other names for the same.
    status = getattr(response, "status_code", None) or response.status
    parsed = getattr(response, "data", None)
    data = parsed if isinstance(parsed, dict) else {}
    error = data.get("error")
    if not isinstance(error, str) or status == 429 or status >= 500:
        return of_status(status, response.headers)
    if error in TOO_MANY:
        return TooMany(_retry_after(response.headers))
    if error in UNSURE:
        return Lost(error)
    if error in PASSING:
        return Unsent(error)
    hints = (data.get("response_metadata") or {}).get("messages") or ()
    return Declined(error, str(data.get("needed") or ""), tuple(map(str, hints)))


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return max(1.0, float(headers.get("Retry-After", _RETRY_AFTER)))
    except ValueError:
        return _RETRY_AFTER
