"""The outcome of one Web API call, classified by whether the call took effect."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import ClientConnectorError, ClientHttpProxyError, ConnectionTimeoutError, InvalidURL
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from ai_platform_engineering.integrations.slack_bot.web_api.error_codes import RATE_LIMITED, TEMPORARY, UNCERTAIN

_RETRY_AFTER: Final = 10.0
"""Seconds, if Slack sends no `Retry-After`."""


@dataclass(frozen=True, slots=True)
class Done:
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Declined:
    """Slack rejected the call. `needed` is a scope that the token lacks, `hints` describe invalid arguments."""

    error: str
    needed: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RateLimited:
    """Slack rejected the call; the next one is allowed after `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RequestNotSent:
    """The call had no effect: Slack was unreachable or temporarily unavailable."""

    reason: str


@dataclass(frozen=True, slots=True)
class ResponseLost:
    """The call may have taken effect: the response was lost or inconclusive."""

    reason: str


Outcome = Done | Declined | RateLimited | RequestNotSent | ResponseLost


async def outcome_of(call: Awaitable[AsyncSlackResponse]) -> Outcome:
    try:
        response = await call
    except SlackApiError as error:
        return outcome_of_error(error)
    except (ClientConnectorError, ClientHttpProxyError, ConnectionTimeoutError, InvalidURL) as error:
        return RequestNotSent(type(error).__name__)
    except SlackClientError as error:
        return Declined(type(error).__name__)
    except Exception as error:
        # Includes slack_sdk's errors on responses that a proxy sent in place of Slack.
        return ResponseLost(type(error).__name__)
    return Done(response.data) if isinstance(response.data, dict) else ResponseLost("unreadable")


def outcome_of_error(error: SlackApiError) -> Outcome:
    """The outcome of a call for which slack_sdk raised `error`."""
    return _of_response(error.response)


def of_status(status: int, headers: Mapping[str, str]) -> Outcome:
    """The outcome of a response without a readable body."""
    if status == 429:
        return RateLimited(_retry_after(headers))
    if status >= 500 or status == 200:
        return ResponseLost(f"http_{status}")
    return Declined(f"http_{status}")


def _of_response(response: Any) -> Outcome:
    # An unparsable response is aiohttp's own object, with other attribute names.
    status = getattr(response, "status_code", None) or response.status
    parsed = getattr(response, "data", None)
    data = parsed if isinstance(parsed, dict) else {}
    error = data.get("error")
    if not isinstance(error, str) or status == 429 or status >= 500:
        return of_status(status, response.headers)
    if error in RATE_LIMITED:
        return RateLimited(_retry_after(response.headers))
    if error in UNCERTAIN:
        return ResponseLost(error)
    if error in TEMPORARY:
        return RequestNotSent(error)
    hints = (data.get("response_metadata") or {}).get("messages") or ()
    return Declined(error, str(data.get("needed") or ""), tuple(map(str, hints)))


def _retry_after(headers: Mapping[str, str]) -> float:
    try:
        return max(1.0, float(headers.get("Retry-After", _RETRY_AFTER)))
    except ValueError:
        return _RETRY_AFTER
