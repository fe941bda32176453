"""The MCP server with the network tools. All of them only read."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp.types import ToolAnnotations
from pydantic import BeforeValidator, Field

from ai_platform_engineering.agents.netutils import subnets, web
from ai_platform_engineering.agents.netutils.targets import (
    Limits,
    ascii_name,
    find_target,
    is_address,
    parse_address,
)
from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.outbound.addresses import Address

MAX_RECORDS = 50

RecordType = Literal["A", "AAAA", "CAA", "CNAME", "MX", "NS", "SOA", "SRV", "TXT"]
Host = Annotated[str, Field(description="Host name or IP address, for example www.example.com.")]
Cidr = Annotated[str, Field(description="Network in CIDR notation, for example 10.0.0.0/16.")]


def server(settings: Settings) -> ToolServer:
    """The server with the limits of these settings."""
    network = NetworkTools(Limits.of(settings))
    tools = ToolServer("netutils")
    for tool, title, contacts in (
        (network.dns_lookup, "DNS lookup", True),
        (network.reverse_lookup, "Reverse lookup", True),
        (network.check_port, "Check port", True),
        (network.certificate_expiry, "Certificate expiry", True),
        (network.http_check, "HTTP check", True),
        (network.subnet_info, "Subnet info", False),
        (network.plan_subnets, "Plan subnets", False),
    ):
        annotations = ToolAnnotations(title=title, readOnlyHint=True, destructiveHint=False, openWorldHint=contacts)
        tools.tool(tool, annotations=annotations)
    return tools


@dataclass(frozen=True)
class NetworkTools:
    limits: Limits

    async def dns_lookup(
        self,
        name: Annotated[str, Field(description="Name to look up, for example www.example.com.")],
        record_type: Annotated[
            RecordType, BeforeValidator(lambda given: str(given).upper()), Field(description="Kind of DNS record.")
        ] = "A",
    ) -> dict[str, Any]:
        """Look up a name in DNS: its addresses, mail servers, name servers or text records."""
        if is_address(name):
            raise ToolError(f"{name} is an IP address, not a name; reverse_lookup finds the name of an address.")
        asked = ascii_name(name)
        records, ttl = await self._records(asked, record_type)
        answer: dict[str, Any] = {"name": asked, "record_type": record_type, "records": records[:MAX_RECORDS]}
        if not records:
            answer["message"] = f"There is no {record_type} record for {asked}."
        if len(records) > MAX_RECORDS:
            answer["total"] = len(records)
        return answer if ttl is None else {**answer, "ttl": ttl}

    async def reverse_lookup(
        self, address: Annotated[str, Field(description="IP address, for example 192.0.2.7.")]
    ) -> dict[str, Any]:
        """Find the name of an IP address (reverse DNS lookup)."""
        wanted = parse_address(address)
        if reason := self.limits.policy.refuses_address(wanted):
            raise ToolError(f"{wanted} was not looked up: it is {reason}.")
        names, _ = await self._records(f"{wanted.reverse_pointer}.", "PTR")
        return {"address": str(wanted), "names": [name.rstrip(".") for name in names[:MAX_RECORDS]]}

    async def check_port(
        self, host: Host, port: Annotated[int, Field(ge=1, le=65535, description="TCP port.")]
    ) -> dict[str, Any]:
        """Check whether a TCP port of a host is open."""
        target = await find_target(host, self.limits)
        results = await asyncio.gather(*(self._connect(address, port) for address in target.addresses))
        state = next((state for state in ("open", "closed") if any(r["state"] == state for r in results)), "no answer")
        return {"host": target.host, "port": port, "state": state, "addresses": results}

    async def certificate_expiry(
        self, host: Host, port: Annotated[int, Field(ge=1, le=65535, description="TCP port.")] = 443
    ) -> dict[str, Any]:
        """Show when the TLS certificate of a host expires, who issued it and whether it is trusted."""
        from ai_platform_engineering.agents.netutils import certificates  # noqa: PLC0415

        target = await find_target(host, self.limits)
        address, handshake = await certificates.handshake_with(target, port, self.limits)
        shown = certificates.describe(handshake, certificates.utc_now())
        return {"host": target.host, "port": port, "address": str(address), **shown}

    async def http_check(
        self, url: Annotated[str, Field(description="Web address, for example https://www.example.com/.")]
    ) -> dict[str, Any]:
        """Check a web address (URL): its HTTP status, how long it took, where it redirects, how its text begins."""
        return await web.check(url, self.limits)

    async def subnet_info(self, cidr: Cidr) -> dict[str, Any]:
        """Describe a network: netmask, first and last host, how many hosts fit."""
        return subnets.describe(subnets.parse_network(cidr))

    async def plan_subnets(
        self,
        cidr: Cidr,
        new_prefix: Annotated[
            int | None, Field(ge=0, le=128, description="Prefix length of each subnet, for example 24.")
        ] = None,
        count: Annotated[int | None, Field(ge=1, description="How many subnets are needed, instead.")] = None,
    ) -> dict[str, Any]:
        """Split a network into equal subnets, by their prefix length or by how many are needed."""
        return subnets.plan(subnets.parse_network(cidr), new_prefix, count)

    async def _records(self, name: str, record_type: str) -> tuple[list[str], int | None]:
        from ai_platform_engineering.agents.netutils import lookups  # noqa: PLC0415

        return await lookups.records_of(name, record_type, self.limits)

    async def _connect(self, address: Address, port: int) -> dict[str, Any]:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.limits.timeout):
                _, writer = await asyncio.open_connection(str(address), port)
        except TimeoutError:
            return {"address": str(address), "state": "no answer"}
        except ConnectionRefusedError:
            return {"address": str(address), "state": "closed"}
        except OSError as error:
            return {"address": str(address), "state": "no answer", "reason": error.strerror or str(error)}
        milliseconds = round((time.monotonic() - began) * 1000, 1)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return {"address": str(address), "state": "open", "milliseconds": milliseconds}
