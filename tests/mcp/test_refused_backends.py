"""The servers of the shipped manifests against a backend that refuses: each of their answers is a failed call."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest

from ai_platform_engineering.manifest import McpServer, builtin_directory, load_manifests
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.mcp.errors import ToolFailed
from ai_platform_engineering.settings import Settings
from tests.mcp.conftest import not_here
from tests.services.mcp_servers import installed_servers

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
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
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


def servers_of(agent: str, backend: Backend) -> list[McpServer]:
    servers = load_manifests([builtin_directory()])[agent].servers
    if agent != "aws":
        return list(servers)
    endpoint = {"AWS_ENDPOINT_URL": backend.url, "AWS_MAX_ATTEMPTS": "1"}
    return [
        server.model_copy(update={"env": {**server.env, **endpoint}})
        for server in servers
        if server.name == "cloudwatch"
    ]


@pytest.mark.timeout(240)  # the servers may have to be installed first
async def test_what_a_refusing_backend_answers_is_a_failed_call(
    settings: Callable[..., Settings], tmp_path: Path
) -> None:
    installed = await asyncio.to_thread(installed_servers, *CALLS, partial=True)
    with refusing() as backend:
        mcp = McpServers(settings(**variables(backend, tmp_path), **installed))
        try:
            await mcp.start({agent: servers_of(agent, backend) for agent in CALLS}, deadline=120)
            started = [agent for agent in CALLS if mcp.problem(agent) is None]
            for status in REFUSALS:
                backend.status = status
                answered = await asyncio.gather(*(said_ok(mcp, agent) for agent in started))
                assert [line for lines in answered for line in lines] == [], status
            backend.status, backend.body = 200, {"metadata": {"resourceVersion": "7"}, "items": None}
            assert await call(mcp, "argocd", "list_applications") is None, "a list that is truly empty"
        finally:
            await mcp.aclose()
    # PagerDuty's needs a Python of its own, which not every machine has.
    missing = [f"{agent}: {mcp.problem(agent)}" for agent in CALLS if agent not in (*started, "pagerduty")]
    if missing:
        not_here("; ".join(missing))


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
