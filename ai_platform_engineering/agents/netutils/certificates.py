"""TLS certificates: the certificate of a server, and whether this machine trusts it."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cryptography import x509

from ai_platform_engineering.agents.netutils.targets import Limits, Target
from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.utils.outbound.addresses import Address

MAX_NAMES = 10


@dataclass(frozen=True)
class Handshake:
    """`problem` is the reason why the certificate is not trusted; None if it is trusted."""

    certificate: x509.Certificate
    protocol: str | None
    problem: str | None


async def handshake_with(target: Target, port: int, limits: Limits) -> tuple[Address, Handshake]:
    """The TLS handshake with the first address that answers, also if its certificate is not trusted."""
    problem: OSError | None = None
    for address in target.addresses:
        try:
            async with asyncio.timeout(limits.timeout):
                return address, await _handshake(target.host, address, port)
        except TimeoutError:
            raise ToolError(f"{target.host} port {port} did not finish within {limits.timeout:g} seconds.") from None
        except ssl.SSLError as error:
            reason = error.reason or error
            raise ToolError(f"The TLS handshake with {target.host} port {port} failed: {reason}.") from error
        except OSError as error:
            problem = error
    raise ToolError(f"{target.host} port {port} cannot be reached: {problem}.") from problem


def describe(handshake: Handshake, now: datetime) -> dict[str, Any]:
    """The result of the tool: expiry, trust, names and issuer of a certificate."""
    certificate = handshake.certificate
    expires = certificate.not_valid_after_utc
    details = {
        "expires": expires.isoformat(),
        "days_left": (expires - now).days,
        "expired": expires <= now,
        "trusted": handshake.problem is None,
        "problem": handshake.problem,
        "valid_from": certificate.not_valid_before_utc.isoformat(),
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "names": _names(certificate),
        "protocol": handshake.protocol,
    }
    return {key: value for key, value in details.items() if value is not None}


def utc_now() -> datetime:
    return datetime.now(UTC)


async def _handshake(host: str, address: Address, port: int) -> Handshake:
    try:
        return await _connect(host, address, port, ssl.create_default_context())
    except ssl.SSLCertVerificationError as error:
        return await _connect(host, address, port, _unverified_context(), error.verify_message)


async def _connect(
    host: str, address: Address, port: int, context: ssl.SSLContext, problem: str | None = None
) -> Handshake:
    _, writer = await asyncio.open_connection(str(address), port, ssl=context, server_hostname=host)
    try:
        connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
        shown = connection.getpeercert(binary_form=True)
        if shown is None:
            raise ToolError(f"{host} port {port} sent no certificate.")
        return Handshake(x509.load_der_x509_certificate(shown), connection.version(), problem)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _unverified_context() -> ssl.SSLContext:
    """Only for reading a certificate that failed verification; no data are sent over the connection."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    names = [str(name.value) for name in extension.value]
    left_out = len(names) - MAX_NAMES
    return names if left_out <= 0 else [*names[:MAX_NAMES], f"and {left_out} more"]
