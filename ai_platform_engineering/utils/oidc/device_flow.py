"""The sign-in of a terminal: the device authorization grant (RFC 8628).

The terminal shows a code, the person confirms it in a browser on any device, and the terminal asks the provider in
intervals whether that has happened.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ai_platform_engineering.settings.fields import is_secure_address
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.oidc.provider import Provider, ProviderError, provider_client
from ai_platform_engineering.utils.oidc.token_endpoint import (
    Client,
    GrantError,
    Tokens,
    error_code,
    fields_of,
    post_form,
    request_tokens,
)

GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"
_DEFAULT_INTERVAL: Final = 5.0
_MAX_INTERVAL: Final = 60.0
_SLOW_DOWN_SECONDS: Final = 5.0


class DeviceFlowError(ReadableError):
    """The sign-in has failed; the text is a sentence with the reason."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """`complete_uri` contains the code, `uri` asks for it."""

    device_code: str = field(repr=False)
    user_code: str
    uri: str
    complete_uri: str | None
    expires_in: float
    interval: float = _DEFAULT_INTERVAL


async def request_code(
    provider: Provider, client: Client, request: Mapping[str, str], tls: ssl.SSLContext
) -> DeviceCode:
    """A code for the person. `request` has the scope and, if wanted, the audience."""
    if provider.device_authorization_endpoint is None:
        raise DeviceFlowError(f"{provider.issuer} has no sign-in for terminals (device_authorization_endpoint).")
    async with provider_client(tls) as http:
        response = await post_form(http, provider.device_authorization_endpoint, provider, client, request)
        if response.is_server_error:
            response.raise_for_status()
    if not response.is_success:
        why = error_code(response) or f"HTTP {response.status_code}"
        raise DeviceFlowError(
            f"{provider.issuer} refused to sign in the client {client.id!r} ({why}). The supervisor's operator sets it "
            "with OIDC_DEVICE_CLIENT_ID and must allow it the device authorization grant."
        )
    return _read_code(fields_of(response), provider)


async def wait_for_tokens(
    provider: Provider,
    client: Client,
    code: DeviceCode,
    tls: ssl.SSLContext,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Tokens:
    """The tokens, once the person has confirmed the code. Raises `DeviceFlowError` if that does not happen."""
    ends, interval = clock() + code.expires_in, code.interval
    grant = {"grant_type": GRANT_TYPE, "device_code": code.device_code}
    while clock() + interval < ends:
        await sleep(interval)
        try:
            async with provider_client(tls) as http:
                return await request_tokens(http, provider, client, grant)
        except ProviderError:
            # A connection that fails once may work the next time.
            interval = min(interval * 2, _MAX_INTERVAL)
        except GrantError as error:
            match error.code:
                case "authorization_pending":
                    pass
                case "slow_down":
                    interval += _SLOW_DOWN_SECONDS
                case "access_denied":
                    raise DeviceFlowError("The sign-in was declined.") from None
                case "expired_token":
                    break
                case _:
                    raise DeviceFlowError(f"{provider.issuer} refused the sign-in ({error}).") from None
    raise DeviceFlowError("The code has expired before it was confirmed. Sign in again for a new one.")


def _read_code(fields: Mapping[str, Any], provider: Provider) -> DeviceCode:
    match fields:
        case {
            "device_code": str(device_code),
            "user_code": str(user_code),
            "verification_uri": str(uri),
            "expires_in": int() | float() as expires_in,
        } if is_secure_address(uri):
            complete, interval = fields.get("verification_uri_complete"), fields.get("interval")
            return DeviceCode(
                device_code,
                user_code,
                uri,
                complete if isinstance(complete, str) and is_secure_address(complete) else None,
                float(expires_in),
                float(interval) if isinstance(interval, int | float) and interval > 0 else _DEFAULT_INTERVAL,
            )
        case _:
            raise DeviceFlowError(f"The response of {provider.issuer} to the sign-in is not valid.")
