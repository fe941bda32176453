"""Jira in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.sandbox.records import (
    TRANSITIONS,
    Comment,
    Priority,
    Ticket,
    TicketProject,
    TicketStatus,
    TicketType,
)
from ai_platform_engineering.sandbox.store import SandboxSession, SandboxStore
from ai_platform_engineering.sandbox.tools import (
    Headline,
    NonEmptyText,
    choice,
    contains_words,
    find_person,
    full_names,
    new_server,
    unknown,
)
from ai_platform_engineering.settings import Settings

UNASSIGNED = "unassigned"

StatusFilter = Literal["open", "To Do", "In Progress", "In Review", "Done"]
IssueKey = Annotated[str, Field(description="Key of the issue, for example SHOP-118.")]


def server(settings: Settings) -> ToolServer:
    """The MCP server over the sandbox file of these settings."""
    jira = Jira(SandboxStore.of(settings))
    return new_server(
        "jira",
        reads=[jira.search_issues, jira.get_issue, jira.list_projects],
        writes=[jira.create_issue, jira.add_comment, jira.transition_issue],
    )


@dataclass(frozen=True)
class Jira:
    store: SandboxStore

    def search_issues(
        self,
        query: Annotated[
            str | None, Field(description="NonEmptyText that the issue has to contain. Plain words, no JQL.")
        ] = None,
        project: Annotated[str | None, Field(description="Only issues of the project with this key.")] = None,
        status: Annotated[
            StatusFilter | None,
            choice(*get_args(StatusFilter)),
            Field(description="Only issues with this status; `open` is every status but Done."),
        ] = None,
        assignee: Annotated[
            str | None,
            Field(description="Only issues of this person: a login or a full name, `me`, or `unassigned`."),
        ] = None,
        limit: Annotated[int, Field(ge=1, le=50, description="How many issues to return at most.")] = 20,
    ) -> dict[str, Any]:
        """Search or list Jira issues (tickets), the most recently updated first."""
        with self.store.read() as session:
            names = full_names(session)
            now = session.organization().now
            tickets = session.all(Ticket)
            if project is not None:
                code = _project(session, project).code
                tickets = [ticket for ticket in tickets if ticket.project == code]
            if assignee is not None:
                unassigned = assignee.strip().casefold() == UNASSIGNED
                login = None if unassigned else find_person(session, assignee).login
                tickets = [ticket for ticket in tickets if ticket.assignee == login]
        found = sorted(
            (
                ticket
                for ticket in tickets
                if _has_status(ticket, status) and (query is None or contains_words(query, *_texts(ticket)))
            ),
            key=lambda ticket: ticket.updated,
            reverse=True,
        )
        return {"total": len(found), "as_of": now, "issues": [_summary(ticket, names) for ticket in found[:limit]]}

    def get_issue(self, issue_key: IssueKey) -> dict[str, Any]:
        """Show one Jira issue (ticket) with its description, comments and what is related to it."""
        with self.store.read() as session:
            ticket = _ticket(session, issue_key)
            names = full_names(session)
        details = {
            **_summary(ticket, names),
            "description": ticket.description,
            "reporter": names[ticket.reporter],
            "labels": ticket.labels,
            "comments": [comment.replace(author=names[comment.author]).model_dump() for comment in ticket.comments],
            "possible_transitions": TRANSITIONS[ticket.status],
            "related": ticket.related.listed(),
        }
        return {key: value for key, value in details.items() if value}

    def list_projects(self) -> dict[str, Any]:
        """List the Jira projects and how many issues of each are open."""
        with self.store.read() as session:
            projects = session.all(TicketProject)
            tickets = session.all(Ticket)
            names = full_names(session)
        return {
            "total": len(projects),
            "projects": [
                {
                    "key": project.code,
                    "name": project.name,
                    "lead": names[project.lead],
                    "open_issues": sum(t.project == project.code and t.status != "Done" for t in tickets),
                }
                for project in projects
            ],
        }

    def create_issue(
        self,
        summary: Annotated[Headline, Field(description="One line that says what it is about.")],
        project: Annotated[
            str,
            Field(description="Key of the project: SHOP for the web shop, PLAT for the platform, SEC for security."),
        ] = "SHOP",
        description: Annotated[str, Field(description="What happens, and what is wanted instead.")] = "",
        issue_type: Annotated[
            TicketType, choice(*get_args(TicketType)), Field(description="Kind of the issue.")
        ] = "Task",
        priority: Annotated[Priority, choice(*get_args(Priority)), Field(description="How urgent it is.")] = "Medium",
        assignee: Annotated[
            str | None, Field(description="Who is to work on it: a login or a full name, or `me`.")
        ] = None,
    ) -> dict[str, Any]:
        """Create a Jira issue (ticket)."""
        with self.store.write() as session:
            code = _project(session, project).code
            login = None if assignee is None else find_person(session, assignee).login
            now = session.advance_clock()
            ticket = Ticket(
                project=code,
                number=1 + max((t.number for t in session.all(Ticket) if t.project == code), default=0),
                summary=summary,
                description=description.strip(),
                type=issue_type,
                priority=priority,
                status="To Do",
                assignee=login,
                reporter=session.organization().me,
                created=now,
                updated=now,
            )
            session.put(ticket)
            names = full_names(session)
        return {"message": f"Created {ticket.key}.", **_summary(ticket, names)}

    def add_comment(
        self, issue_key: IssueKey, body: Annotated[NonEmptyText, Field(description="Text of the comment.")]
    ) -> dict[str, Any]:
        """Comment on a Jira issue (ticket)."""
        with self.store.write() as session:
            ticket = _ticket(session, issue_key)
            now = session.advance_clock()
            comment = Comment(author=session.organization().me, body=body, created=now)
            ticket = ticket.replace(comments=(*ticket.comments, comment), updated=now)
            session.put(ticket)
        return {"message": f"Commented on {ticket.key}.", "comments": len(ticket.comments), "url": ticket.url}

    def transition_issue(
        self,
        issue_key: IssueKey,
        status: Annotated[TicketStatus, choice(*get_args(TicketStatus)), Field(description="The new status.")],
    ) -> dict[str, Any]:
        """Move a Jira issue (ticket) to another status."""
        with self.store.write() as session:
            ticket = _ticket(session, issue_key)
            allowed = TRANSITIONS[ticket.status]
            if status not in allowed:
                raise ToolError(
                    f"{ticket.key} is {ticket.status} and cannot go to {status}. It can go to: {', '.join(allowed)}."
                )
            before = ticket.status
            ticket = ticket.replace(status=status, updated=session.advance_clock())
            session.put(ticket)
            names = full_names(session)
        return {"message": f"Moved {ticket.key} from {before} to {status}.", **_summary(ticket, names)}


def _ticket(session: SandboxSession, key: str) -> Ticket:
    found = session.find(Ticket, key.strip())
    if found is None:
        code = key.strip().partition("-")[0].upper()
        tickets = session.all(Ticket)
        of_project = [ticket.key for ticket in tickets if ticket.project == code]
        raise unknown("issue", key, of_project or [ticket.key for ticket in tickets])
    return found


def _project(session: SandboxSession, key: str) -> TicketProject:
    wanted = key.strip().casefold()
    projects = session.all(TicketProject)
    for project in projects:
        if wanted in (project.code.casefold(), project.name.casefold()):
            return project
    raise unknown("project", key, (f"{project.code} ({project.name})" for project in projects))


def _has_status(ticket: Ticket, status: StatusFilter | None) -> bool:
    match status:
        case None:
            return True
        case "open":
            return ticket.status != "Done"
        case _:
            return ticket.status == status


def _texts(ticket: Ticket) -> tuple[str, ...]:
    return (ticket.key, ticket.summary, ticket.description, *ticket.labels)


def _summary(ticket: Ticket, names: dict[str | None, str | None]) -> dict[str, Any]:
    return {
        "key": ticket.key,
        "summary": ticket.summary,
        "type": ticket.type,
        "status": ticket.status,
        "priority": ticket.priority,
        "assignee": names[ticket.assignee],
        "created": ticket.created,
        "updated": ticket.updated,
        "url": ticket.url,
    }
