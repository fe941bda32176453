"""`platform-engineer login`, `logout` and the commands that use the login: processes, a supervisor, and a provider."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.oidc_provider import TERMINAL, TestProvider, decide, providing
from tests.servers import ROOT, serving


def environ_of(folder: Path) -> dict[str, str]:
    return {"DATA_DIR": str(folder), "SANDBOX": "true", "ENABLE_RAG": "false", "OFFLINE_MODEL_DELAY": "0"}


def guarded_by(provider: TestProvider) -> dict[str, str]:
    return {
        "A2A_OAUTH_ISSUER": provider.url,
        "A2A_OAUTH_AUDIENCE": "platform",
        "OIDC_DEVICE_CLIENT_ID": TERMINAL,
        "OIDC_DEVICE_SCOPES": "openid offline_access",
    }


async def started(folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ai_platform_engineering.cli",
        *arguments,
        env=environ | {"DATA_DIR": str(folder / "data")},
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run(folder: Path, *arguments: str) -> tuple[int | None, str, str]:
    process = await started(folder, *arguments)
    output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


async def log_in(folder: Path, url: str, *, accept: bool = True) -> tuple[int | None, str, str]:
    """Run `login`, and decide in a browser once it shows the address."""
    process = await started(folder, "login", "--url", url)
    assert process.stdout is not None
    shown = ""
    while (found := re.search(r"contains the code: (\S+)", shown)) is None:
        line = await process.stdout.readline()
        assert line, await process.communicate()
        shown += line.decode()
    async with httpx.AsyncClient() as http:
        await decide(http, found[1], accept=accept)
    output, errors = await process.communicate()
    return process.returncode, shown + output.decode(), errors.decode()


@pytest.mark.long
async def test_a_person_signs_in_asks_and_signs_out(tmp_path: Path) -> None:
    provider = TestProvider(interval=0.1)
    async with providing(provider), serving(create_app, environ_of(tmp_path) | guarded_by(provider)) as url:
        code, output, error = await log_in(tmp_path, url, accept=False)
        assert (code, "The sign-in was declined." in error) == (1, True)
        code, output, error = await run(tmp_path, "chat", "--url", url, "show argocd version")
        assert (code, f"platform-engineer login --url {url}" in error) == (2, True)

        code, output, error = await log_in(tmp_path, url)
        assert (code, error) == (0, "")
        assert output.endswith(f"Signed in at {url} as ada-1815.\n")
        file = tmp_path / ".config/platform-engineer/logins.json"
        assert file.stat().st_mode & 0o777 == 0o600
        (login,) = json.loads(file.read_text())["logins"]
        assert (login["url"], login["issuer"]) == (url, provider.url)
        assert login["access_token"] not in output

        # The access token has expired meanwhile, so the first command refreshes it.
        file.write_text(json.dumps({"logins": [login | {"expires_at": 0}]}))
        code, output, error = await run(tmp_path, "chat", "--url", url, "show argocd version")
        assert (code, "v3.1.8" in output) == (0, True), error
        (renewed,) = json.loads(file.read_text())["logins"]
        assert renewed["refresh_token"] != login["refresh_token"]
        assert (await run(tmp_path, "skills", "list", "--url", url))[0] == 0

        code, output, _ = await run(tmp_path, "logout", "--url", url)
        assert (code, output) == (0, f"Signed out at {url}.\n")
        assert not provider.refreshes
        assert json.loads(file.read_text())["logins"] == []
        assert (await run(tmp_path, "skills", "list", "--url", url))[0] != 0


@pytest.mark.long
async def test_the_card_has_the_flows_of_the_provider(tmp_path: Path) -> None:
    async with providing() as provider, httpx.AsyncClient() as http:
        async with serving(create_app, environ_of(tmp_path) | guarded_by(provider)) as url:
            card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
            assert card["skills"]
        provider.down = True
        async with serving(create_app, environ_of(tmp_path) | guarded_by(provider)) as url:
            without = (await http.get(f"{url}/.well-known/agent-card.json")).json()
    assert {*without["securitySchemes"]} == {"access_token", "openid"}
    code, device = (card["securitySchemes"][name] for name in ("oauth2_code", "oauth2_device"))
    endpoints = {"tokenUrl": f"{provider.url}/token", "refreshUrl": f"{provider.url}/token"}
    flow = code["oauth2SecurityScheme"]["flows"]["authorizationCode"]
    assert flow.items() >= (endpoints | {"authorizationUrl": f"{provider.url}/authorize", "pkceRequired": True}).items()
    assert (code["type"], code["flows"]["authorizationCode"]["tokenUrl"]) == ("oauth2", f"{provider.url}/token")
    flow = device["oauth2SecurityScheme"]["flows"]["deviceCode"]
    assert flow.items() >= (endpoints | {"deviceAuthorizationUrl": f"{provider.url}/device_authorization"}).items()
    assert {"oauth2_device": ["openid", "profile"]} in card["security"]


@pytest.mark.long
async def test_supervisors_without_such_a_sign_in_are_explained(tmp_path: Path) -> None:
    key = {"A2A_AUTH_SHARED_KEY": "correct-horse-battery"}
    for environ, code, sentence in (({}, 0, "requires no sign-in"), (key, 1, "has no sign-in for the terminal")):
        async with serving(create_app, environ_of(tmp_path) | environ) as url:
            ended, output, error = await run(tmp_path, "login", "--url", url)
            assert (ended, sentence in output + error) == (code, True)
    ended, _, error = await run(tmp_path, "login", "--url", "http://127.0.0.1:9")
    assert (ended, "There is no supervisor at http://127.0.0.1:9" in error) == (1, True)
    ended, _, error = await run(tmp_path, "login", "--url", "http://tools.example.com")
    assert (ended, "over https only" in error) == (2, True)
