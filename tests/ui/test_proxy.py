"""The supervisor behind nginx with TLS and a path prefix, with the configuration of docs/deploy.md."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from playwright.async_api import Browser, expect

from ai_platform_engineering.events import FinalResult
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.ui.page import BUILT
from ai_platform_engineering.utils.a2a_common.server.sign_in_attempts import FREE_ATTEMPTS
from tests.oidc_provider import PAGE, decide, providing
from tests.servers import Caller, serving
from tests.services.environment import not_here
from tests.services.local_server import LocalServer
from tests.services.nginx import nginx_server, self_signed
from tests.ui.browser import Contexts

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
KEY = "correct-horse-battery"
QUESTION = "Which Argo CD version is running?"


@dataclass(frozen=True)
class Proxied:
    url: str
    """The public address, with the prefix."""
    tls: ssl.SSLContext

    def browser(self, address: str | None = None) -> httpx.AsyncClient:
        """A client that keeps cookies and sends the origin of the page. `address` is its own."""
        transport = httpx.AsyncHTTPTransport(verify=self.tls, local_address=address)
        origin = self.url.removesuffix("/platform/")
        return httpx.AsyncClient(transport=transport, base_url=self.url, headers={"Origin": origin}, timeout=60)


def documented_site(public_port: int, port: int, certificate: Path, key: Path) -> str:
    """The nginx configuration of the documentation, with the ports and files of the test."""
    text = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    (site,) = re.findall(r"^```nginx\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for written, here in (
        ("listen 443 ", f"listen 127.0.0.1:{public_port} "),
        ("http://127.0.0.1:8000/", f"http://127.0.0.1:{port}/"),
        ("/etc/ssl/tools.example.com.pem", str(certificate)),
        ("/etc/ssl/tools.example.com.key", str(key)),
    ):
        assert site.count(written) == 1, written
        site = site.replace(written, here)
    return str(site)


@asynccontextmanager
async def proxied(tmp_path: Path, **environ: str) -> AsyncIterator[Proxied]:
    certificate, key = self_signed(tmp_path, "localhost")
    port = 0

    def site(server: LocalServer) -> str:
        return documented_site(server.port, port, certificate, key)

    nginx = nginx_server(site)
    url = f"https://localhost:{nginx.port}/platform/"
    environ = {"DATA_DIR": str(tmp_path), "A2A_PUBLIC_URL": url, "A2A_AUTH_SHARED_KEY": KEY, **environ}
    async with serving(create_app, {"SANDBOX": "true", "ENABLE_RAG": "false", **environ}) as upstream:
        port = httpx.URL(upstream).port or 0
        with ExitStack() as stack:
            stack.enter_context(nginx.running())
            yield Proxied(url, ssl.create_default_context(cafile=str(certificate)))


async def sign_in(browser: httpx.AsyncClient, key: str = KEY, **headers: str) -> httpx.Response:
    return await browser.post("session", json={"key": key}, headers=headers)


async def test_the_page_and_its_files_are_found_under_the_prefix(tmp_path: Path) -> None:
    if not (BUILT / "index.html").is_file():
        not_here("the page was not built: make setup builds it where Node.js 20 or newer or PyPI can be reached")
    async with proxied(tmp_path) as site, site.browser() as browser:
        moved = await browser.get(site.url.removesuffix("/"))
        assert (moved.status_code, moved.headers["location"]) == (308, site.url)
        page = await browser.get("")
        assert page.status_code == 200
        assert "require-trusted-types-for" in page.headers["content-security-policy"]
        addresses = re.findall(r'(?:href|src)="([^"]+)"', page.text)
        assert len(addresses) >= 2
        for address in addresses:
            file = await browser.get(urljoin(site.url, address))
            assert (file.status_code, file.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
            assert file.headers["content-encoding"] in {"br", "gzip"}
        unchanged = await browser.get("", headers={"If-None-Match": page.headers["etag"]})
        assert unchanged.status_code == 304


async def test_a_browser_signs_in_with_openid_connect(tmp_path: Path) -> None:
    async with providing() as provider:
        environ = {"A2A_OAUTH_ISSUER": provider.url, "OIDC_CLIENT_ID": PAGE}
        async with proxied(tmp_path, **environ) as site, site.browser() as browser:
            provider.clients[PAGE].redirect_uris.add(f"{site.url}session/callback")
            started = await browser.get("session/start", params={"place": "#/agents"})
            async with httpx.AsyncClient() as http:
                decided = await decide(http, started.headers["location"])
            returned = await browser.get(decided.headers["location"])
            assert urljoin(decided.headers["location"], returned.headers["location"]) == f"{site.url}#/agents"
            assert (await browser.get("session")).json()["subject"] == "ada-1815"
            assert all(cookie.name.startswith("__Host-") and cookie.secure for cookie in browser.cookies.jar)


async def test_a_browser_signs_in_and_uses_rest(tmp_path: Path) -> None:
    async with proxied(tmp_path) as site, site.browser() as browser:
        assert (await browser.get("session")).json()["required"] is True
        assert (await browser.get("tools")).status_code == 401
        assert (await sign_in(browser, Origin="https://evil.example")).status_code == 403
        answer = await sign_in(browser)
        assert answer.status_code == 200
        assert answer.headers["set-cookie"].startswith("__Host-platform-engineer-session")
        assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} <= set(answer.headers["set-cookie"].split("; "))
        assert (await browser.get("tools")).json()["tools"]
        assert (await browser.get("tasks")).status_code == 200
        assert (await browser.delete("session")).json()["error"] == "csrf"
        csrf = {"X-CSRF-Token": answer.json()["csrf_token"]}
        assert (await browser.delete("session", headers=csrf)).status_code == 204
        assert (await browser.get("tools")).status_code == 401


async def test_answers_are_streamed_and_not_buffered(tmp_path: Path) -> None:
    async with proxied(tmp_path, OFFLINE_MODEL_DELAY="0.1") as site, site.browser() as browser:
        csrf = {"X-CSRF-Token": (await sign_in(browser)).json()["csrf_token"]}
        message = {"role": "ROLE_USER", "messageId": "m-1", "parts": [{"text": QUESTION}]}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
        events: list[dict[str, Any]] = []
        state_at_first = ""
        async with browser.stream("POST", "", json=call, headers={**csrf, "A2A-Version": "1.0"}) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    events.append(json.loads(line.removeprefix("data: "))["result"])
                    if len(events) == 1:
                        task = await browser.get(f"tasks/{events[0]['task']['id']}")
                        state_at_first = task.json()["status"]["state"]
        assert state_at_first in {"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"}
        assert events[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_programs_find_the_address_in_the_card(tmp_path: Path, binding: str) -> None:
    async with proxied(tmp_path) as site:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(verify=site.tls, headers=headers, timeout=60) as http:
            card = await A2ACardResolver(http, site.url).get_agent_card()
            assert {interface.url for interface in card.supported_interfaces} == {site.url}
            config = ClientConfig(streaming=True, httpx_client=http, supported_protocol_bindings=[binding])
            events = await Caller(site.url, http, ClientFactory(config).create(card)).ask(QUESTION)
            assert isinstance(events[-1], FinalResult)


async def test_wrong_keys_slow_down_their_own_address_only(tmp_path: Path) -> None:
    async with proxied(tmp_path) as site, site.browser("127.0.0.2") as guessing, site.browser("127.0.0.3") as other:
        for number in range(FREE_ATTEMPTS):
            # The proxy replaces what a client claims to be its address.
            refused = await sign_in(guessing, "wrong", **{"X-Forwarded-For": f"203.0.113.{number}"})
            assert refused.status_code == 401
        assert (await sign_in(guessing)).status_code == 429
        assert (await sign_in(other)).status_code == 200


async def test_a_person_asks_through_the_proxy(browser: Browser, tmp_path: Path) -> None:
    async with proxied(tmp_path, OFFLINE_MODEL_DELAY="0") as site:
        # Chromium does not know the certificate of the test.
        contexts = Contexts(browser, site.url.removesuffix("/"))
        try:
            page = await contexts.new_page(ignore_https_errors=True)
            await page.goto("")
            await page.get_by_label("Key of the supervisor").fill(KEY)
            await page.get_by_role("button", name="Sign in").click()
            await page.get_by_role("textbox", name="Your message").fill(QUESTION)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Try again")).to_be_visible()
            conversation = page.url
            assert conversation.startswith(f"{site.url}#")
            await page.reload()
            await expect(page.get_by_role("button", name="Try again")).to_be_visible()
            await expect(page).to_have_url(conversation)
            (cookie,) = await page.context.cookies()
            assert cookie["name"].startswith("__Host-")
            assert (cookie["secure"], cookie["httpOnly"]) == (True, True)
            for view in ("agents", "workflows", "skills"):
                await page.goto(f"{site.url}#/{view}")
                await expect(page.locator(".entry").first).to_be_visible()
        finally:
            await contexts.close()
        contexts.problems.check()
