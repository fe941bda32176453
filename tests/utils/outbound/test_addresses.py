from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.utils.outbound.addresses import (
    METADATA,
    host_name,
    host_of,
    literal,
    refusal,
    resolve,
    resolve_blocking,
)
from ai_platform_engineering.utils.outbound.policy import OutboundPolicy, RefusedError

FULLWIDTH = str.maketrans("0123456789.", "０１２３４５６７８９．")
CIRCLED = str.maketrans("123456789", "①②③④⑤⑥⑦⑧⑨")
FORBIDDEN = ["0.0.0.0", "127.0.0.1", "127.1.2.3", "10.0.0.1", "100.64.0.1", "172.16.0.1", "192.168.0.1", "169.254.7.7"]
FORBIDDEN += ["224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1"]
V4_METADATA = [str(network.network_address) for network in METADATA if network.version == 4]


def judged(address: str, *, allow_private: bool) -> str | None:
    return refusal(ipaddress.ip_address(address), allow_private=allow_private, allowed_by="THE_SETTING")


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.1.1", "100.64.0.1", "198.18.0.1", "240.0.0.1"),
        *("0.1.2.3", "::1", "fe80::1", "fe80::1%eth0", "fd00::1", "fec0::1", "2001:db8::1", "100::1", "4000::1"),
        *("::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"),
        *("64:ff9b:1::a00:1", "64:ff9b:1::808:808"),
    ],
)
def test_private_ones_are_refused_unless_allowed(address: str) -> None:
    assert "THE_SETTING=true allows it" in (judged(address, allow_private=False) or "")
    assert judged(address, allow_private=True) is None


@pytest.mark.parametrize(
    "address",
    [
        *(str(network.network_address) for network in METADATA),
        *("169.254.169.253", "169.254.170.23", "fe80::a9fe:a9fe%eth0", "fd00:ec2::254%eth0"),
        *("0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"),
    ],
)
def test_some_are_refused_always(address: str) -> None:
    assert judged(address, allow_private=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_public_ones_are_not(address: str) -> None:
    assert judged(address, allow_private=False) is None


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_the_same_however_it_is_carried(address: IPv4Address) -> None:
    for prefix in ("::ffff:", "64:ff9b::"):
        assert judged(f"{prefix}{address}", allow_private=False) == judged(str(address), allow_private=False)


def carriers(address: IPv4Address) -> list[IPv6Address]:
    """IPv6 addresses that lead to an IPv4 address: mapped, translated, NAT64 in all layouts, 6to4, Teredo, ISATAP."""
    value, local = int(address), int(IPv6Address("64:ff9b:1::"))
    return [
        *(IPv6Address(f"{prefix}{address}") for prefix in ("::ffff:", "::ffff:0:", "64:ff9b::", "64:ff9b:1::")),
        IPv6Address(local | value >> 16 << 64 | (value & 0xFFFF) << 40),
        IPv6Address(local | value >> 24 << 64 | (value & 0xFFFFFF) << 32),
        IPv6Address(local | value << 24),
        IPv6Address(0x2002 << 112 | value << 80 | 1),
        IPv6Address(0x20010000 << 96 | int(IPv4Address("8.8.8.8")) << 64 | value ^ 0xFFFFFFFF),
        IPv6Address(0x20010000 << 96 | value << 64 | int(IPv4Address("8.8.8.8")) ^ 0xFFFFFFFF),
        IPv6Address(int(IPv6Address("2001:db8::")) | 0x00005EFE << 32 | value),
        IPv6Address(int(IPv6Address("2606:4700::")) | 0x02005EFE << 32 | value),
    ]


@pytest.mark.parametrize("address", V4_METADATA)
def test_no_carrier_leads_to_a_metadata_service(address: str) -> None:
    for carrier in carriers(IPv4Address(address)):
        assert judged(str(carrier), allow_private=True), carrier


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A host that programs take for one of the forbidden addresses."""
    address = IPv4Address(draw(st.sampled_from([*FORBIDDEN, *V4_METADATA])))
    count = draw(st.integers(1, 4))
    octets = list(address.packed)
    numbers = [*octets[: count - 1], int.from_bytes(bytes(octets[count - 1 :]))]
    forms = [draw(st.sampled_from(["{}", "0x{:x}", "0X{:X}", "0x000{:x}", "0{:o}", "000{:o}"])) for _ in numbers]
    text = ".".join(form.format(number) for form, number in zip(forms, numbers, strict=True))
    carried = [f"[{carrier}]" for carrier in carriers(address)[:4]]
    changed = [text, f"{text}.", text.translate(FULLWIDTH), text.translate(CIRCLED), text.replace(".", "。"), *carried]
    return draw(st.sampled_from(changed))


@given(spellings(), st.sampled_from(["http", "https"]), st.sampled_from(["", "8.8.8.8@", "user:8.8.8.8@"]))
def test_no_spelling_of_a_forbidden_address_is_taken_for_a_name(host: str, scheme: str, user: str) -> None:
    """A host that passes as a name would be resolved, and the name server's answer checked instead."""
    try:
        url = httpx.URL(f"{scheme}://{user}{host}/")
    except httpx.InvalidURL:
        return
    with pytest.raises(RefusedError):
        OutboundPolicy(variables="TEST").check_url(url)
    # The hosts of settings are written in the same ways.
    assert literal(host_of(host) or "") is not None


def test_names_and_addresses() -> None:
    assert host_name("Docs.Example.COM.") == "docs.example.com"
    assert host_name("bücher.example") == "xn--bcher-kva.example"
    assert host_name("a b") is None
    assert host_name("") is None
    assert str(literal("::1")) == "::1"
    assert literal("example.com") is None
    assert host_of("[::1]") == "::1"


@pytest.mark.parametrize("host", ["1.2.3.4.5", "256.1.1.1", "4294967296", "08", "1..2", "a.0x7f"])
def test_a_host_that_ends_in_a_number_and_is_no_address_is_no_name(host: str) -> None:
    assert host_of(host) is None


async def test_resolving_as_this_machine_does() -> None:
    assert "127.0.0.1" in {str(address) for address in await resolve("localhost")}
    assert await resolve("nothing.invalid") == resolve_blocking("nothing.invalid") == []
    assert await resolve("a" * 70 + ".example") == []
