"""The login of a person: its token is used, refreshed once for all processes, and ends."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.utils.access_tokens import AccessTokenError, AccessTokenRefusedError
from ai_platform_engineering.utils.oidc.login_file import Login, LoginFile
from ai_platform_engineering.utils.supervisor_auth import LoginTokens, SupervisorAuth
from tests.oidc_provider import TERMINAL, Refresh, TestProvider, providing

URL = "http://127.0.0.1:8000"


def stored(provider: TestProvider, path: Path, *, expired: bool = True, refresh: str | None = "r1") -> LoginFile:
    """A file with a login, and the provider that knows its refresh token."""
    provider.refreshes["r1"] = Refresh(TERMINAL, "family", "openid", None)
    logins = LoginFile(path / "config" / "logins.json")
    now = time.time()
    with logins.locked():
        logins.save(Login(URL, provider.name, TERMINAL, "first", refresh, now - 1 if expired else now + 100))
    return logins


def tokens_of(logins: LoginFile) -> LoginTokens:
    login = logins.find(URL)
    assert login is not None
    return LoginTokens(logins, login)


async def test_processes_share_one_refresh(tmp_path: Path) -> None:
    async with providing() as provider:
        logins = stored(provider, tmp_path)
        processes = [tokens_of(logins) for _ in range(4)]
        used = await asyncio.gather(*(process.token() for process in processes for _ in range(3)))
        assert len(set(used)) == 1
        assert provider.calls["token"] == 1
        # The refresh token was rotated: the stored one can be used, the first cannot.
        again = tokens_of(logins)
        again.forget(used[0])
        assert await again.token() != used[0]
        assert provider.calls["token"] == 2
    assert (tmp_path / "config" / "logins.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "config").stat().st_mode & 0o777 == 0o700


async def test_an_ended_login_names_the_command(tmp_path: Path) -> None:
    async with providing() as provider:
        for known in (None, "stolen"):
            tokens = tokens_of(stored(provider, tmp_path, refresh=known))
            with pytest.raises(AccessTokenRefusedError, match=f"platform-engineer login --url {URL}"):
                await tokens.token()
        tokens = tokens_of(stored(provider, tmp_path))
        provider.down = True
        with pytest.raises(AccessTokenError, match="at the moment") as error:
            await tokens.token()
        assert not isinstance(error.value, AccessTokenRefusedError)
        provider.down = False
        assert await tokens.token()


async def test_the_login_is_used_without_a_key_and_at_its_supervisor_only(tmp_path: Path) -> None:
    async with providing() as provider:
        stored(provider, tmp_path, expired=False)
        environ = {"LOGINS_FILE": str(tmp_path / "config" / "logins.json")}

        async def sent(url: str | None, **more: str) -> str | None:
            auth = SupervisorAuth(load_settings(environ | more, None), url)
            request = await anext(auth.async_auth_flow(httpx.Request("GET", URL)))
            return request.headers.get("authorization")

        assert await sent(f"{URL}/") == "Bearer first"
        assert await sent("http://127.0.0.1:8001") is None
        assert await sent(None) is None
        key = "correct-horse-battery"
        assert await sent(URL, A2A_AUTH_SHARED_KEY=key) == f"Bearer {key}"


def test_an_unusable_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "logins.json"
    file.write_text("{")
    with pytest.raises(SettingsError, match=r"logins\.json cannot be used.*delete it"):
        LoginFile(file).find(URL)
