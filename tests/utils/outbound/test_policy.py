from __future__ import annotations

import ipaddress

import httpx
import pytest

from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.outbound.policy import OPERATOR, OutboundPolicy, RefusedError

PUBLIC, PRIVATE, METADATA = map(ipaddress.ip_address, ("93.184.215.14", "10.0.0.1", "169.254.169.254"))


def refusal_of(policy: OutboundPolicy, url: str) -> str | None:
    try:
        policy.check_url(httpx.URL(url))
    except RefusedError as error:
        return str(error)
    return None


def test_ports_are_those_of_the_setting() -> None:
    policy = OutboundPolicy(variables="PUSH", allowed_ports=frozenset({443, 8443}))
    assert refusal_of(policy, "https://site.test/") is None
    assert refusal_of(policy, "https://site.test:8443/") is None
    assert refusal_of(policy, "http://site.test/") == (
        "site.test was not contacted: 80 is not one of the ports that PUSH_ALLOWED_PORTS allows (443, 8443)."
    )


def test_plain_http_is_for_this_machine_unless_allowed() -> None:
    policy = OutboundPolicy(variables="PUSH", allow_private=True, allow_http=False)
    assert refusal_of(policy, "http://127.0.0.1/") is None
    assert refusal_of(policy, "https://10.0.0.1/") is None
    assert refusal_of(policy, "http://10.0.0.1/") == (
        "10.0.0.1 was not contacted: it is not on this machine, so https is required; PUSH_ALLOW_HTTP=true allows http."
    )
    with pytest.raises(RefusedError, match="https is required"):
        policy.checked("site.test", [PUBLIC], "http")


def test_a_metadata_service_is_contacted_where_the_operator_names_its_address() -> None:
    address = str(METADATA)
    named = OutboundPolicy(variables="PUSH", allow_private=True, allowed_hosts=(address, "*.test"))
    assert refusal_of(named, f"http://{address}/") is None
    assert "metadata service" in str(refusal_of(OPERATOR, f"http://{address}/"))
    with pytest.raises(RefusedError, match="metadata service"):
        named.checked("site.test", [METADATA])
    only_named = OutboundPolicy(variables="PUSH", allowed_hosts=(address,))
    assert "PUSH_ALLOW_PRIVATE=true allows it" in str(refusal_of(only_named, f"http://{address}/"))


def test_metadata_services_are_refused_by_name_because_a_proxy_would_resolve_it() -> None:
    assert "metadata service" in str(refusal_of(OPERATOR, "http://Metadata.Google.Internal./computeMetadata/"))


def test_only_the_allowed_addresses_of_a_name_are_used() -> None:
    assert OutboundPolicy().checked("site.test", [PRIVATE, PUBLIC, METADATA]) == [PUBLIC]


def test_a_reason_fits_into_other_sentences() -> None:
    with pytest.raises(RefusedError) as refused:
        OPERATOR.checked("site.test", [METADATA])
    assert reason_of(refused.value) == "the metadata service of a cloud, which is never contacted"
    with pytest.raises(RefusedError) as refused:
        OPERATOR.checked("site.test", [])
    assert reason_of(refused.value) == "host name not found"


@pytest.mark.parametrize("url", ["ftp://site.test/", "/path", "", "http://a b/"])
def test_what_is_no_web_address(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return
    with pytest.raises(RefusedError):
        OPERATOR.check_url(parsed)
