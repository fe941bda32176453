from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.utils.addresses import METADATA, host_name, literal, refusal, resolve


def judged(address: str, *, allow_private: bool) -> str | None:
    return refusal(ipaddress.ip_address(address), allow_private=allow_private, allowed_by="THE_SETTING")


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.0.1", "169.254.1.1", "100.64.0.1", "198.18.0.1", "240.0.0.1"),
        *("::1", "fe80::1", "fd00::1", "fec0::1", "2001:db8::1", "100::1", "4000::1"),
        *("::ffff:10.0.0.1", "::ffff:0:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::"),
    ],
)
def test_private_ones_are_refused_unless_allowed(address: str) -> None:
    assert "THE_SETTING=true allows it" in (judged(address, allow_private=False) or "")
    assert judged(address, allow_private=True) is None


@pytest.mark.parametrize(
    "address",
    [
        *sorted(map(str, METADATA)),
        *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1"),
        *("fd00:ec2::254%eth0", "::169.254.169.254", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"),
    ],
)
def test_some_are_refused_always(address: str) -> None:
    assert judged(address, allow_private=True)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_public_ones_are_not(address: str) -> None:
    assert judged(address, allow_private=False) is None


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_the_same_however_it_is_carried(address: ipaddress.IPv4Address) -> None:
    for prefix in ("::ffff:", "64:ff9b::"):
        assert judged(f"{prefix}{address}", allow_private=False) == judged(str(address), allow_private=False)


def test_names_and_addresses() -> None:
    assert host_name("Docs.Example.COM.") == "docs.example.com"
    assert host_name("bücher.example") == "xn--bcher-kva.example"
    assert host_name("a b") is None
    assert host_name("") is None
    assert str(literal("::1")) == "::1"
    assert literal("example.com") is None


async def test_resolving_as_this_machine_does() -> None:
    assert "127.0.0.1" in {str(address) for address in await resolve("localhost")}
    assert await resolve("nothing.invalid") == []
    assert await resolve("a" * 70 + ".example") == []
