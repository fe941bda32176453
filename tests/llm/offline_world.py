"""Tool sets like those of real agents, and a small loop that drives a model with them.

The tools answer from plain tables; nothing of the model's own code is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException

READ = {"read_only": True, "destructive": False}
WRITE = {"read_only": False, "destructive": False}
DESTROY = {"read_only": False, "destructive": True}


def tool(
    name: str,
    description: str,
    properties: Mapping[str, Any],
    function: Callable[..., Any],
    *,
    required: Sequence[str] = (),
    metadata: Mapping[str, Any] = READ,
) -> BaseTool:
    def run(**arguments: Any) -> str:
        result = function(**arguments)
        return result if isinstance(result, str) else json.dumps(result)

    schema = {"type": "object", "properties": dict(properties), "required": list(required)}
    return StructuredTool.from_function(
        run, name=name, description=description, args_schema=schema, metadata=dict(metadata)
    )


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def optional(schema: Mapping[str, Any]) -> dict[str, Any]:
    """As pydantic writes `X | None = None`."""
    inner = dict(schema)
    description = inner.pop("description", "")
    return {"anyOf": [inner, {"type": "null"}], "default": None, "description": description}


APPLICATIONS = [
    {"name": "checkout", "project": "shop", "health": "Healthy", "sync_status": "Synced"},
    {"name": "guestbook", "project": "shop", "health": "Healthy", "sync_status": "OutOfSync"},
    {"name": "monitoring", "project": "platform", "health": "Healthy", "sync_status": "OutOfSync"},
    {"name": "payments-api", "project": "shop", "health": "Degraded", "sync_status": "Synced"},
]
ISSUES = [
    {"key": "SHOP-118", "summary": "payments-api is down", "status": "In Progress", "assignee": "priya"},
    {"key": "PLAT-41", "summary": "Renew the wildcard certificate", "status": "To Do", "assignee": "alex"},
    {"key": "SEC-15", "summary": "Rotate the registry token", "status": "In Review", "assignee": "alex"},
]
INCIDENTS = [
    {"id": "P4711", "title": "payments-api does not answer", "status": "triggered", "service": "payments-api"},
    {"id": "P4708", "title": "checkout latency", "status": "acknowledged", "service": "checkout"},
]


def _application(application: str) -> dict[str, Any]:
    for row in APPLICATIONS:
        if row["name"] == application:
            return dict(row)
    raise ToolException(
        f"There is no application '{application}'. Applications: {', '.join(row['name'] for row in APPLICATIONS)}."
    )


def _rows(rows: Sequence[Mapping[str, Any]], kind: str, **wanted: Any) -> dict[str, Any]:
    chosen = [row for row in rows if all(value is None or row[key] == value for key, value in wanted.items())]
    return {"total": len(chosen), kind: chosen}


def argocd_tools() -> list[BaseTool]:
    application = text("Name of the application")
    return [
        tool(
            "version_service__version",
            "Version of the Argo CD server and of the tools it was built with.",
            {},
            lambda: {"Version": "v3.1.8+becb020", "GoVersion": "go1.24.6", "Platform": "linux/amd64"},
        ),
        tool(
            "list_applications",
            "Applications with their health and sync status.",
            {
                "project": optional(text("Only applications of this project")),
                "health": optional(
                    text("Only with this health", enum=["Healthy", "Degraded", "Progressing", "Suspended"])
                ),
                "sync_status": optional(text("Only with this sync status", enum=["Synced", "OutOfSync"])),
            },
            lambda project=None, health=None, sync_status=None: _rows(
                APPLICATIONS, "applications", project=project, health=health, sync_status=sync_status
            ),
        ),
        tool(
            "get_application",
            "One application in detail: health, sync status, image, links.",
            {"application": application},
            _application,
            required=["application"],
        ),
        tool(
            "get_application_history",
            "Deployment history of an application.",
            {"application": application},
            lambda application: [{"revision": 3, "deployed": "2026-04-07"}, {"revision": 2, "deployed": "2026-04-01"}],
            required=["application"],
        ),
        tool(
            "list_projects",
            "Projects of Argo CD.",
            {},
            lambda: [{"name": "shop", "applications": 3}, {"name": "platform", "applications": 1}],
        ),
        tool(
            "sync_application",
            "Sync an application with its Git repository.",
            {"application": application},
            lambda application: {**_application(application), "sync_status": "Synced"},
            required=["application"],
            metadata=WRITE,
        ),
        tool(
            "rollback_application",
            "Roll an application back to an earlier revision.",
            {
                "application": application,
                "revision": optional({"type": "integer", "minimum": 1, "description": "Revision to go back to"}),
            },
            lambda application, revision=None: _application(application),
            required=["application"],
            metadata=DESTROY,
        ),
    ]


def jira_tools() -> list[BaseTool]:
    key = text("Key of the issue, such as SHOP-118", pattern=r"^[A-Z]+-\d+$")
    return [
        tool(
            "search_issues",
            "Search issues (tickets).",
            {
                "query": optional(text("Words to look for")),
                "project": optional(text("Key of the project")),
                "status": optional(text("Status", enum=["open", "To Do", "In Progress", "In Review", "Done"])),
                "assignee": optional(text("'me', 'unassigned', a login or a name")),
                "limit": {"type": "integer", "default": 20, "minimum": 1, "maximum": 100},
            },
            lambda query=None, project=None, status=None, assignee=None, limit=20: _rows(
                ISSUES,
                "issues",
                assignee="alex" if assignee == "me" else assignee,
                status=None if status == "open" else status,
            ),
        ),
        tool(
            "get_issue",
            "One issue with its description and comments.",
            {"issue_key": key},
            lambda issue_key: next(row for row in ISSUES if row["key"] == issue_key),
            required=["issue_key"],
        ),
        tool(
            "create_issue",
            "Create an issue.",
            {
                "summary": text("One line that says what it is about"),
                "project": text("Key of the project", default="SHOP"),
                "description": optional(text("The details")),
                "issue_type": optional(text("Type", enum=["Bug", "Task", "Story"])),
                "priority": optional(text("Priority", enum=["Highest", "High", "Medium", "Low"])),
            },
            lambda summary, **more: {"key": "SHOP-120", "summary": summary},
            required=["summary"],
            metadata=WRITE,
        ),
        tool(
            "add_comment",
            "Add a comment to an issue.",
            {"issue_key": key, "body": text("Text of the comment")},
            lambda issue_key, body: {"issue": issue_key, "comment": body},
            required=["issue_key", "body"],
            metadata=WRITE,
        ),
        tool(
            "transition_issue",
            "Move an issue to another status.",
            {"issue_key": key, "status": text("New status", enum=["To Do", "In Progress", "In Review", "Done"])},
            lambda issue_key, status: {"key": issue_key, "status": status},
            required=["issue_key", "status"],
            metadata=WRITE,
        ),
        tool(
            "list_projects",
            "Projects.",
            {},
            lambda: [{"key": "SHOP", "name": "Shop"}, {"key": "SEC", "name": "Security"}],
        ),
    ]


def github_tools() -> list[BaseTool]:
    repository = text("Name of the repository")
    number = {"type": "integer", "minimum": 1, "description": "Number of the issue or pull request"}
    state = text("State", enum=["open", "closed", "all"], default="open")
    return [
        tool(
            "list_repositories",
            "Repositories of the organisation.",
            {"query": optional(text("Words to look for"))},
            lambda query=None: [{"name": "payments-api"}, {"name": "gitops"}],
        ),
        tool(
            "get_repository",
            "One repository.",
            {"repository": repository},
            lambda repository: {"name": repository},
            required=["repository"],
        ),
        tool(
            "list_issues",
            "Issues of one repository or of all.",
            {"repository": optional(repository), "state": state},
            lambda repository=None, state="open": [
                {"repository": "checkout", "number": 88, "title": "Slow checkout"},
                {"repository": "payments-api", "number": 57, "title": "Image tag is checked too late"},
            ],
        ),
        tool(
            "get_issue",
            "One issue.",
            {"repository": repository, "number": number},
            lambda repository, number: {"repository": repository, "number": number, "title": "Slow checkout"},
            required=["repository", "number"],
        ),
        tool(
            "create_issue",
            "Create an issue in a repository.",
            {"repository": repository, "title": text("Title"), "body": optional(text("Text"))},
            lambda repository, title, body=None: {"number": 99, "repository": repository, "title": title},
            required=["repository", "title"],
            metadata=WRITE,
        ),
        tool(
            "list_pull_requests",
            "Pull requests of one repository or of all.",
            {"repository": optional(repository), "state": state},
            lambda repository=None, state="open": [{"repository": "gitops", "number": 415, "title": "Fix the tag"}],
        ),
        tool(
            "get_pull_request",
            "One pull request.",
            {"repository": repository, "number": number},
            lambda repository, number: {"repository": repository, "number": number, "state": "open"},
            required=["repository", "number"],
        ),
        tool(
            "create_repository",
            "Create a repository.",
            {
                "name": text("Name of the repository"),
                "description": optional(text("What it is for")),
                "private": {"type": "boolean", "default": True},
            },
            lambda name, **more: {"name": name, **more},
            required=["name"],
            metadata=WRITE,
        ),
        tool(
            "merge_pull_request",
            "Merge a pull request.",
            {"repository": repository, "number": number},
            lambda repository, number: {"repository": repository, "number": number, "state": "merged"},
            required=["repository", "number"],
            metadata=WRITE,
        ),
    ]


def pagerduty_tools() -> list[BaseTool]:
    incident = text("Id of the incident, such as P4711")
    return [
        tool(
            "list_incidents",
            "Incidents, the open ones unless stated otherwise.",
            {
                "status": text("Status", enum=["open", "triggered", "acknowledged", "resolved", "all"], default="open"),
                "service": optional(text("Only incidents of this service")),
            },
            lambda status="open", service=None: _rows(
                INCIDENTS, "incidents", service=service, status=None if status in {"open", "all"} else status
            ),
        ),
        tool(
            "get_incident",
            "One incident.",
            {"incident_id": incident},
            lambda incident_id: INCIDENTS[0],
            required=["incident_id"],
        ),
        tool(
            "list_on_calls",
            "Who is on call now and next, per schedule.",
            {"schedule": optional(text("Only this schedule"))},
            lambda schedule=None: [
                {"schedule": "Payments on-call", "now": "Priya Nair"},
                {"schedule": "Shop on-call", "now": "Tom Becker"},
            ],
        ),
        tool("list_services", "Services.", {}, lambda: [{"name": "checkout"}, {"name": "payments-api"}]),
        tool(
            "acknowledge_incident",
            "Acknowledge an incident.",
            {"incident_id": incident},
            lambda incident_id: {"id": incident_id, "status": "acknowledged"},
            required=["incident_id"],
            metadata=WRITE,
        ),
        tool(
            "resolve_incident",
            "Resolve an incident.",
            {"incident_id": incident, "note": optional(text("What was done"))},
            lambda incident_id, note=None: {"id": incident_id, "status": "resolved"},
            required=["incident_id"],
            metadata=WRITE,
        ),
    ]


def netutils_tools() -> list[BaseTool]:
    host = text("Host name or address")
    return [
        tool(
            "dns_lookup",
            "Look up DNS records of a name.",
            {
                "name": text("DNS name"),
                "record_type": text("Kind of record", enum=["A", "AAAA", "MX", "TXT", "NS", "CNAME"], default="A"),
            },
            lambda name, record_type="A": {"name": name, "type": record_type, "records": ["192.0.2.1"]},
            required=["name"],
        ),
        tool(
            "reverse_lookup",
            "Name of an IP address.",
            {"address": text("IP address")},
            lambda address: {"address": address},
            required=["address"],
        ),
        tool(
            "check_port",
            "Whether a TCP port answers.",
            {"host": host, "port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "TCP port"}},
            lambda host, port: {"host": host, "port": port, "open": True},
            required=["host", "port"],
        ),
        tool(
            "plan_subnets",
            "Split a network into subnets.",
            {
                "cidr": text("Network"),
                "new_prefix": optional({"type": "integer", "description": "Prefix length of the subnets"}),
                "count": optional({"type": "integer", "description": "How many subnets"}),
            },
            lambda cidr, new_prefix=None, count=None: {"cidr": cidr, "new_prefix": new_prefix, "count": count},
            required=["cidr"],
        ),
        tool(
            "subnet_info",
            "Facts about a network.",
            {"cidr": text("Network")},
            lambda cidr: {"cidr": cidr},
            required=["cidr"],
        ),
        tool(
            "certificate_expiry",
            "When a server's TLS certificate expires.",
            {"host": host, "port": {"type": "integer", "default": 443, "minimum": 1, "maximum": 65535}},
            lambda host, port=443: {"host": host, "port": port, "expires": "2026-09-01"},
            required=["host"],
        ),
        tool(
            "http_check",
            "Whether a web address answers, and how.",
            {"url": text("Address")},
            lambda url: {"url": url, "status": 200},
            required=["url"],
        ),
    ]


AGENTS: dict[str, tuple[str, Callable[[], list[BaseTool]]]] = {
    "argocd": (
        "Argo CD applications - status, health, sync, rollback, version."
        " (keywords: argocd, argo, gitops, application, app, sync, deploy, deployment, rollout)",
        argocd_tools,
    ),
    "github": (
        "GitHub repositories, issues and pull requests."
        " (keywords: github, repository, repo, issue, pull request, pr, code, merge)",
        github_tools,
    ),
    "jira": (
        "Jira issues - search, create, comment, transition. (keywords: jira, ticket, issue, bug, story, backlog)",
        jira_tools,
    ),
    "netutils": (
        "Network checks - DNS, ports, subnets, TLS certificates, HTTP."
        " (keywords: dns, port, subnet, cidr, certificate, tls, http, network, ip)",
        netutils_tools,
    ),
    "pagerduty": (
        "PagerDuty incidents and on-call schedules. (keywords: pagerduty, incident, on-call, alert, page, outage)",
        pagerduty_tools,
    ),
}

PROMPT = "You look after {name}. Use your tools, be exact, and answer in Markdown."


def form_tool(*answers: Mapping[str, Any] | str) -> BaseTool:
    """The tool with which a model asks a person, who gives these answers one after the other."""
    given = iter(answers)
    field = {"type": "object", "properties": {"name": {"type": "string"}, "type": {"type": "string"}}}
    return tool(
        "request_user_input",
        "Ask the person for what is missing, with a form. Its title names the issue, ticket, app or repository.",
        {"title": text("Title"), "description": text("Why"), "fields": {"type": "array", "items": field}},
        lambda title, fields, description="": next(given),
        required=["title", "fields"],
        metadata={},
    )


def workflow_tool() -> BaseTool:
    return tool(
        "start_workflow",
        "Start one of the workflows: create a repository, roll back an application.",
        {"name": text("Name of the workflow"), "values": {"type": "object"}},
        lambda name, values=None: "",
        required=["name"],
        metadata={},
    )


def supervisor_tools(problems: Mapping[str, str] | None = None) -> list[BaseTool]:
    lines = [
        f"- {name}: {line}" + (f" [no tools: {problems[name]}]" if problems and name in problems else "")
        for name, (line, _) in AGENTS.items()
    ]
    step = {
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "agent": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "status": {"enum": ["pending", "in_progress", "completed", "failed"]},
        },
        "required": ["content", "agent", "status"],
    }
    return [
        tool(
            "write_todos",
            "Write the plan.",
            {"title": text("Title"), "steps": {"type": "array", "items": step}},
            lambda title, steps: "The plan is written.",
            required=["title", "steps"],
        ),
        tool(
            "task",
            "Delegate a part of the request to an agent. Agents:\n" + "\n".join(lines),
            {"description": text("What to do"), "subagent_type": text("Which agent")},
            lambda description, subagent_type: "",
            required=["description", "subagent_type"],
        ),
    ]


def run_agent(
    model: BaseChatModel,
    name: str,
    question: str,
    tools: Sequence[BaseTool] | None = None,
    *,
    turns: int = 8,
    rules: str = "",
) -> list[BaseMessage]:
    """All messages of one run of an agent, whose prompt ends with `rules`."""
    instructions = "\n\n".join(filter(None, [PROMPT.format(name=name), rules]))
    messages: list[BaseMessage] = [SystemMessage(instructions), HumanMessage(question)]
    tools = AGENTS[name][1]() if tools is None else tools
    by_name = {item.name: item for item in tools}
    bound = model.bind_tools(tools)
    for _ in range(turns):
        reply = bound.invoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return messages
        messages += [_result(by_name[call["name"]], call) for call in reply.tool_calls]
    raise AssertionError(f"no answer within {turns} turns to {question!r}")


def _result(item: BaseTool, call: Any) -> ToolMessage:
    try:
        content, status = str(item.invoke(call["args"])), "success"
    except ToolException as error:
        content, status = str(error), "error"
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"], status=status)


def run_supervisor(
    model: BaseChatModel, question: str, history: Sequence[BaseMessage] = (), problems: Mapping[str, str] | None = None
) -> list[BaseMessage]:
    """All messages of a conversation after one more question, with every delegation really run by an agent."""
    messages: list[BaseMessage] = [*history, HumanMessage(question)]
    bound = model.bind_tools(supervisor_tools(problems))
    for _ in range(6):
        reply = bound.invoke([SystemMessage("You are the supervisor."), *messages])
        messages.append(reply)
        if not reply.tool_calls:
            return messages
        for call in reply.tool_calls:
            content = "The plan is written."
            if call["name"] == "task":
                content = str(run_agent(model, call["args"]["subagent_type"], call["args"]["description"])[-1].text)
            messages.append(ToolMessage(content, name=call["name"], tool_call_id=call["id"]))
    raise AssertionError(f"no answer to {question!r}")


def calls_of(messages: Sequence[BaseMessage], name: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Tool calls in order, as (name, arguments)."""
    return [
        (call["name"], call["args"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if name is None or call["name"] == name
    ]
