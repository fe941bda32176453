"""Every user of the guard refuses metadata services, in all spellings, also where private addresses are allowed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import httpx
import pytest
from a2a.types.a2a_pb2 import Part

from ai_platform_engineering.agents.netutils.server import server as netutils
from ai_platform_engineering.knowledge_bases.rag.reranking import Reranker, RerankError
from ai_platform_engineering.knowledge_bases.rag.web.client import FetchError, WebClient
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.multi_agents.connectivity import new_client, probe
from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import FeedbackFile
from ai_platform_engineering.multi_agents.platform_engineer.feedback.forwarding import FeedbackForwarder
from ai_platform_engineering.multi_agents.platform_engineer.feedback.langfuse import Langfuse
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.utils.a2a_common.a2a_remote_agent_connect import (
    A2ARemoteAgentConnectTool,
    RemoteAgentError,
    RemoteThread,
)
from ai_platform_engineering.utils.a2a_common.client.own_transport import CheckedResolver
from ai_platform_engineering.utils.a2a_common.server.issuer_keys import fetch_keys
from ai_platform_engineering.utils.a2a_common.server.push_sender import PushSender, push_policy
from ai_platform_engineering.utils.access_tokens import AccessTokenError, AccessTokens, Grant
from ai_platform_engineering.utils.oidc.provider import ProviderError, provider_client
from ai_platform_engineering.utils.outbound.addresses import METADATA_REASON, literal
from ai_platform_engineering.utils.outbound.policy import RefusedError
from tests.runs.graphs import context, settings_of
from tests.tool_sessions import ask
from tests.utils.a2a_common.serving import until

HOSTILE = [
    *("http://169.254.169.254/", "https://169.254.169.254/", "http://169.254.169.254:8080/", "http://169.254.170.2/"),
    *("http://100.100.100.200/", "http://192.0.0.192/", "http://168.63.129.16/"),
    *("http://[fd00:ec2::254]/", "http://[fe80::a9fe:a9fe%25eth0]/", "http://[::ffff:169.254.169.254]/"),
    *("http://[64:ff9b::a9fe:a9fe]/", "http://[2002:a9fe:a9fe::1]/", "http://[::169.254.169.254]/"),
    *("http://2852039166/", "http://0xa9fea9fe/", "http://0251.0xfe.43518/", "http://169.254.43518/"),
    *("http://169.254.169.254./", "http://169。254。169。254/", "http://metadata.google.internal/"),
]
ALLOWED = {"PUSH_ALLOW_PRIVATE": "true", "PUSH_ALLOW_HTTP": "true", "NETUTILS_ALLOW_PRIVATE": "true"}


async def push(url: str) -> None:
    await PushSender(push_policy(settings_of(**ALLOWED))).check(url)


async def fetch_url(url: str) -> None:
    async with WebClient(WebPolicy(allow_private=True)) as client:
        await client.fetch(url)


async def http_check(url: str) -> None:
    await ask(netutils(settings_of(**ALLOWED)), "http_check", {"url": url})


async def check_port(url: str) -> None:
    await ask(netutils(settings_of(**ALLOWED)), "check_port", {"host": httpx.URL(url).host, "port": 80})


async def remote_agent(url: str) -> None:
    agent = A2ARemoteAgentConnectTool("argocd", url, settings_of())
    async with aclosing(agent), aclosing(agent.stream([Part(text="hi")], context(), RemoteThread("d"))) as events:
        async for _ in events:
            pass


async def remote_agent_check(url: str) -> None:
    async with new_client() as client:
        result = await probe(AgentEntry("argocd", True, "remote", "", url), client, timeout=60)
    raise RemoteAgentError(result.reason or "")


async def issuer(url: str) -> None:
    async with provider_client(httpx.create_ssl_context(verify=False)) as http:
        await fetch_keys(http, url)


async def token_endpoint(url: str) -> None:
    await AccessTokens(Grant(url, "client", "secret")).token()


async def reranker(url: str) -> None:
    await asyncio.to_thread(Reranker(url), "query", ["text"])


USERS = [push, fetch_url, http_check, check_port, remote_agent, remote_agent_check, issuer, token_endpoint, reranker]
REFUSALS = (RefusedError, FetchError, ToolError, RemoteAgentError, ProviderError, AccessTokenError, RerankError)


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.__name__)
async def test_metadata_services_are_refused_however_they_are_written(user: Callable[[str], Awaitable[None]]) -> None:
    # Each client of the token endpoint loads the trusted certificates, which takes long.
    for url in HOSTILE[:3] if user is token_endpoint else HOSTILE:
        with pytest.raises(REFUSALS) as refused:
            await user(url)
        assert METADATA_REASON in str(refused.value), (url, str(refused.value))


async def test_mcp_servers_and_with_them_the_knowledge_base() -> None:
    servers = McpServers(settings_of())
    try:
        await servers.start({url: [McpServer(name="rag", transport="http", url=url)] for url in HOSTILE}, deadline=60)
        for url in HOSTILE:
            assert METADATA_REASON in (servers.problem(url) or ""), url
    finally:
        await servers.aclose()


async def test_feedback(caplog: pytest.LogCaptureFixture) -> None:
    for url in HOSTILE[:3]:
        caplog.clear()
        store = FeedbackFile(None)
        store.store(Feedback("t1", "up", "web", 1))
        async with FeedbackForwarder(store, Langfuse(url.rstrip("/"), "pk", "sk")).running():
            await until(lambda: METADATA_REASON in caplog.text)
        store.close()


async def test_streams_of_our_agents() -> None:
    async def rebound(name: str) -> list[object]:
        return [literal("169.254.169.254")]

    with pytest.raises(RefusedError, match="metadata service"):
        await CheckedResolver(rebound).resolve("agent.test", 8000)


@pytest.fixture(autouse=True)
def _log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
