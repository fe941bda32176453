"""The MCP servers of the shipped manifests, started once per run: all at once, against a backend that refuses.

The starts take seconds of CPU time each. The tests read which tools the servers listed and what their calls led to.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest
from mcp.types import Tool
from pydantic import BaseModel

from ai_platform_engineering.manifest import McpServer, builtin_directory, load_manifests
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.mcp.errors import ToolFailed
from ai_platform_engineering.settings import load_settings
from tests.made_once import made_once
from tests.services.mcp_servers import installed_servers

START_SECONDS: Final = 240
MANIFESTS: Final = load_manifests([builtin_directory()])
SERVERS: Final[Mapping[str, McpServer]] = {
    f"{manifest.name}.{server.name}": server for manifest in MANIFESTS.values() for server in manifest.servers
}
# Interpreters of pyenv are not in the PATH unless they are chosen.
PATH: Final = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"], *map(str, Path.home().glob(".pyenv/versions/3.12*/bin"))]
)
APPLICATION: Final = {"applicationName": "shop", "applicationNamespace": "argocd"}
WORKLOAD: Final = {
    "uid": "1",
    "kind": "Pod",
    "namespace": "shop",
    "name": "web",
    "version": "v1",
    "group": "",
}
CALLS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "argocd": {
        "list_applications": {},
        "list_clusters": {},
        "get_application": APPLICATION,
        "get_resources": APPLICATION,
        "get_application_workload_logs": {**APPLICATION, "resourceRef": WORKLOAD, "container": "web"},
        "sync_application": APPLICATION,
    },
    "aws": {"describe_log_groups": {}, "get_logs_insight_query_results": {"query_id": "q-1"}},
    "confluence": {
        "confluence_search": {"query": "runbook"},
        "confluence_get_page_children": {"parent_id": "1"},
        "confluence_get_comments": {"page_id": "1"},
        "confluence_add_comment": {"page_id": "1", "body": "hello"},
        "confluence_search_user": {"query": "ann"},
    },
    "gitlab": {"list_projects": {}, "get_project": {"project_id": "1"}},
    "jira": {
        "jira_search": {"jql": "project = SHOP"},
        "jira_get_user_profile": {"user_identifier": "ann"},
        "jira_get_all_projects": {},
        "jira_search_projects": {"query": "shop"},
        "jira_get_agile_boards": {},
        "jira_get_sprints_from_board": {"board_id": "1"},
    },
    "kubernetes": {"namespaces_list": {}, "pods_list": {}},
    "pagerduty": {"list_incidents": {}, "list_services": {}},
    "splunk": {"list_indexes": {}, "get_saved_search": {"name": "errors"}},
}
REFUSALS: Final = {
    401: {"error": "no session information", "code": 16, "message": "no session information"},
    403: {"error": "permission denied", "code": 7, "message": "permission denied"},
    500: {"error": "internal error", "code": 13, "message": "internal error"},
}


@dataclass
class Backend:
    """A stand-in for every backend: it answers all requests alike."""

    port: int
    status: int = 401
    body: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def refusing() -> Iterator[Backend]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = json.dumps(backend.body if backend.status == 200 else REFUSALS[backend.status]).encode()
            self.send_response(backend.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_HEAD = answer  # noqa: N815 - the names the base class looks for

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the base class gives it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    backend = Backend(server.server_address[1])
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield backend
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def variables(backend: Backend, directory: Path) -> dict[str, str]:
    kubeconfig = directory / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": backend.url}}
    user = {"name": "u", "user": {"token": "expired"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [cluster],
                "users": [user],
                "contexts": [context],
                "current-context": "x",
            }
        )
    )
    return {
        # Every variable that a manifest requires, with an address of this machine.
        **{name: "http://127.0.0.1:1" for manifest in MANIFESTS.values() for name in manifest.requires},
        "PATH": PATH,
        "MCP_START_TIMEOUT": str(START_SECONDS),
        "ARGOCD_API_URL": backend.url,
        "ARGOCD_API_TOKEN": "expired",
        "AWS_AGENT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "expired",
        "AWS_SECRET_ACCESS_KEY": "expired",
        "CONFLUENCE_URL": backend.url,
        "CONFLUENCE_USERNAME": "ann",
        "CONFLUENCE_API_TOKEN": "expired",
        "GITLAB_API_URL": f"{backend.url}/api/v4",
        "GITLAB_PERSONAL_ACCESS_TOKEN": "expired",
        "JIRA_URL": backend.url,
        "JIRA_USERNAME": "ann",
        "JIRA_API_TOKEN": "expired",
        "KUBERNETES_KUBECONFIG": str(kubeconfig),
        "PAGERDUTY_API_HOST": backend.url,
        "PAGERDUTY_USER_API_KEY": "expired",
        "SPLUNK_HOST": "127.0.0.1",
        "SPLUNK_PORT": str(backend.port),
        "SPLUNK_SCHEME": "http",
        "SPLUNK_TOKEN": "expired",
    }


class ShippedServers(BaseModel):
    """What came of the start and of the calls."""

    tools: dict[str, list[Tool] | str]
    """All tools of a server, by agent and server, or why the server has not listed them."""
    problems: dict[str, str]
    """Why an agent cannot be called."""
    accepted: dict[int, list[str]]
    """By status of the backend, the calls that did not fail, or that failed without a reason."""
    empty_list: str | None
    """Why a call failed whose answer is a list that is truly empty."""


def shipped_servers(factory: pytest.TempPathFactory) -> ShippedServers:
    def make(folder: Path) -> None:
        result = asyncio.run(_started(folder))
        (folder / "result.json").write_text(result.model_dump_json(by_alias=True))

    return ShippedServers.model_validate_json(
        (made_once(factory, "shipped-servers", make) / "result.json").read_bytes()
    )


async def _started(folder: Path) -> ShippedServers:
    installed = await asyncio.to_thread(installed_servers, *MANIFESTS, partial=True)
    with refusing() as backend:
        environ = {**os.environ, **variables(backend, folder), **installed}
        mcp = McpServers(load_settings(environ, env_file=None))
        try:
            await mcp.start({agent: servers_of(agent, backend) for agent in MANIFESTS}, deadline=START_SECONDS)
            tools = {
                f"{agent}.{owner.server.name}": owner.problem or list(owner.tools)
                for agent, owners in mcp._owners.items()
                for owner in owners
            }
            problems = {agent: problem for agent in CALLS if (problem := mcp.problem(agent)) is not None}
            callable_agents = [agent for agent in CALLS if agent not in problems]
            accepted: dict[int, list[str]] = {}
            for status in REFUSALS:
                backend.status = status
                answered = await asyncio.gather(*(said_ok(mcp, agent) for agent in callable_agents))
                accepted[status] = [line for lines in answered for line in lines]
            backend.status, backend.body = 200, {"metadata": {"resourceVersion": "7"}, "items": None}
            empty_list = None if "argocd" in problems else await call(mcp, "argocd", "list_applications")
        finally:
            await mcp.aclose()
    return ShippedServers(tools=tools, problems=problems, accepted=accepted, empty_list=empty_list)


def servers_of(agent: str, backend: Backend) -> Sequence[McpServer]:
    servers = [server for server in MANIFESTS[agent].servers if server.transport == "stdio"]
    endpoint = {"AWS_ENDPOINT_URL": backend.url, "AWS_MAX_ATTEMPTS": "1"} if agent == "aws" else {}
    return [server.model_copy(update={"env": {**server.env, **endpoint}}) for server in servers]


async def said_ok(mcp: McpServers, agent: str) -> list[str]:
    """The calls whose answer did not count as a failure, or as one that has no reason."""
    return [
        f"{agent} {name}"
        for name in CALLS[agent]
        if not (reason := await call(mcp, agent, name)) or reason.startswith("{")
    ]


async def call(mcp: McpServers, agent: str, name: str) -> str | None:
    """Why the call failed; None if it did not."""
    tool = next(tool for tool in mcp.tools(agent) if tool.name == name)
    try:
        await tool.ainvoke(dict(CALLS[agent][name]))
    except ToolFailed as error:
        return error.reason
    return None
