"""The device authorization grant, at a strict provider, with a clock that both share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx
import pytest

from ai_platform_engineering.utils.oidc.device_flow import DeviceFlowError, request_code, wait_for_tokens
from ai_platform_engineering.utils.oidc.provider import Provider, ProviderError, fetch_metadata, read_metadata
from ai_platform_engineering.utils.oidc.token_endpoint import Client, Tokens
from tests.oidc_provider import PAGE, TERMINAL, TestProvider, decide, providing

Step = Callable[[], Awaitable[None]]


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.slept: list[float] = []
        self.steps: dict[int, Step] = {}
        """What happens during the sleep of that number."""

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if (step := self.steps.get(len(self.slept))) is not None:
            await step()


async def metadata(provider: TestProvider) -> Provider:
    async with httpx.AsyncClient() as http:
        return await fetch_metadata(http, provider.name)


async def sign_in(provider: TestProvider, clock: Clock, *, accept: bool = True, at: int = 2) -> Tokens:
    """Sign in; the person decides during the sleep number `at`."""
    found, tls = await metadata(provider), httpx.create_ssl_context()
    code = await request_code(found, Client(TERMINAL), {"scope": "openid", "audience": "us"}, tls)
    assert code.complete_uri is not None
    address = code.complete_uri

    async def decided() -> None:
        async with httpx.AsyncClient() as http:
            await decide(http, address, accept=accept)

    clock.steps.setdefault(at, decided)
    return await wait_for_tokens(found, Client(TERMINAL), code, tls, clock=clock, sleep=clock.sleep)


async def test_a_person_confirms_the_code() -> None:
    clock = Clock()
    async with providing(TestProvider(clock=clock, interval=3)) as provider:
        tokens = await sign_in(provider, clock)
    assert clock.slept == [3, 3]
    assert (tokens.expires_in, tokens.refresh_token is not None) == (300, True)
    assert tokens.access_token not in repr(tokens)


async def test_the_terminal_slows_down_on_request() -> None:
    clock = Clock()
    async with providing(TestProvider(clock=clock, interval=3)) as provider:

        async def hasten() -> None:
            (device,) = provider.devices.values()
            device.polled = clock()

        clock.steps[2] = hasten
        await sign_in(provider, clock, at=3)
    assert clock.slept == [3, 3, 8]


async def test_a_provider_that_is_down_for_a_moment_is_asked_again() -> None:
    clock = Clock()
    async with providing(TestProvider(clock=clock, interval=3)) as provider:

        async def fail() -> None:
            provider.down = True

        async def recover() -> None:
            provider.down = False

        clock.steps |= {1: fail, 2: recover}
        await sign_in(provider, clock, at=3)
    assert clock.slept == [3, 6, 6]


async def test_a_declined_and_an_expired_code_are_reported() -> None:
    clock = Clock()
    async with providing(TestProvider(clock=clock, interval=3, device_seconds=20)) as provider:
        with pytest.raises(DeviceFlowError, match="declined"):
            await sign_in(provider, clock, accept=False)
        clock = Clock()
        with pytest.raises(DeviceFlowError, match="has expired"):
            await sign_in(provider, clock, at=100)


async def test_a_client_that_may_not_do_this_is_named() -> None:
    async with providing() as provider:
        found, tls = await metadata(provider), httpx.create_ssl_context()
        with pytest.raises(DeviceFlowError, match=rf"'{PAGE}' \(unauthorized_client\).*OIDC_DEVICE_CLIENT_ID"):
            await request_code(found, Client(PAGE), {"scope": "openid"}, tls)
        with pytest.raises(DeviceFlowError, match="device_authorization_endpoint"):
            await request_code(Provider(found.issuer), Client(TERMINAL), {"scope": "openid"}, tls)


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"issuer": "https://i.example/other"}, "another issuer"),
        ({"issuer": None}, "another issuer"),
        ({"issuer": "https://i.example", "token_endpoint": "http://i.example/token"}, "token_endpoint"),
        ({"issuer": "https://i.example", "jwks_uri": 7}, "jwks_uri"),
        ({"issuer": "https://i.example", "revocation_endpoint": "javascript:x"}, "revocation_endpoint"),
    ],
)
def test_metadata_of_others_or_without_https_are_not_used(document: dict[str, object], why: str) -> None:
    with pytest.raises(ProviderError, match=why):
        read_metadata(document, "https://i.example")
