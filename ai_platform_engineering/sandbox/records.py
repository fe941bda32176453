"""The records of the sandbox, as immutable values.

The `key` of a record is the name that people use: an application's name, `SHOP-118`, `acme/gitops#412`, `P4711`.
Records refer to each other by key. Health, sync status and addresses are computed, so they are always consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

OWNER = "acme"

Health = Literal["Healthy", "Degraded", "Progressing", "Suspended"]
SyncStatus = Literal["Synced", "OutOfSync"]
TicketStatus = Literal["To Do", "In Progress", "In Review", "Done"]
TicketType = Literal["Bug", "Task", "Story"]
Priority = Literal["Highest", "High", "Medium", "Low"]
IssueState = Literal["open", "closed"]
PullRequestState = Literal["open", "closed", "merged"]
IncidentStatus = Literal["triggered", "acknowledged", "resolved"]

TRANSITIONS: Mapping[TicketStatus, tuple[TicketStatus, ...]] = {
    "To Do": ("In Progress", "Done"),
    "In Progress": ("To Do", "In Review", "Done"),
    "In Review": ("In Progress", "Done"),
    "Done": ("To Do",),
}


class Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    def replace(self, **changes: object) -> Self:
        """A copy with some fields changed."""
        return self.model_copy(update=changes)


class Record(Value):
    """A stored value. Its class name is stored with it as the kind, so renaming a class needs a migration."""

    @property
    def key(self) -> str:
        raise NotImplementedError


class Related(Value):
    """Keys of related records, also in other products."""

    applications: tuple[str, ...] = ()
    tickets: tuple[str, ...] = ()
    pull_requests: tuple[str, ...] = ()
    github_issues: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()

    def listed(self) -> dict[str, list[str]]:
        return {kind: list(keys) for kind, keys in self if keys}


class Organization(Record):
    """The organization: `me` is the login of the person who uses the sandbox, `now` is the sandbox's clock."""

    name: str
    me: str
    now: datetime
    argocd_version: dict[str, str]

    @property
    def key(self) -> str:
        return "organization"


class Employee(Record):
    login: str
    name: str
    role: str

    @property
    def key(self) -> str:
        return self.login

    @property
    def email(self) -> str:
        return f"{self.login}@acme.example"


class ApplicationProject(Record):
    name: str
    description: str

    @property
    def key(self) -> str:
        return self.name


class Revision(Value):
    """A commit that Argo CD can deploy. `problem` is the reason why it does not run; None if it runs."""

    revision: str
    image: str
    author: str
    message: str
    pull_request: str | None = None
    problem: str | None = None


class Deployment(Value):
    id: int
    revision: str
    deployed_at: datetime
    initiated_by: str


class Application(Record):
    """`revisions` are in commit order. The last one is the desired state in Git; `live` is the one that runs."""

    name: str
    project: str
    namespace: str
    path: str
    live: str
    revisions: tuple[Revision, ...]
    history: tuple[Deployment, ...]
    condition: Health = "Healthy"
    related: Related = Related()

    @property
    def key(self) -> str:
        return self.name

    @property
    def url(self) -> str:
        return f"https://argocd.acme.example/applications/{self.name}"

    @property
    def target(self) -> Revision:
        return self.revisions[-1]

    @property
    def running(self) -> Revision:
        return next(revision for revision in self.revisions if revision.revision == self.live)

    @property
    def sync_status(self) -> SyncStatus:
        return "Synced" if self.live == self.target.revision else "OutOfSync"

    @property
    def health(self) -> Health:
        return "Degraded" if self.running.problem else self.condition

    def deployed(self, revision: str, at: datetime, by: str) -> Application:
        """This application with `revision` running."""
        deployment = Deployment(id=self.history[-1].id + 1, revision=revision, deployed_at=at, initiated_by=by)
        condition = "Suspended" if self.condition == "Suspended" else "Healthy"
        return self.replace(live=revision, condition=condition, history=(*self.history, deployment))


class TicketProject(Record):
    code: str
    name: str
    lead: str

    @property
    def key(self) -> str:
        return self.code


class Comment(Value):
    author: str
    body: str
    created: datetime


class Ticket(Record):
    project: str
    number: int
    summary: str
    description: str
    type: TicketType
    priority: Priority
    status: TicketStatus
    assignee: str | None
    reporter: str
    labels: tuple[str, ...] = ()
    created: datetime
    updated: datetime
    comments: tuple[Comment, ...] = ()
    related: Related = Related()

    @property
    def key(self) -> str:
        return f"{self.project}-{self.number}"

    @property
    def url(self) -> str:
        return f"https://jira.acme.example/browse/{self.key}"


class GithubRepository(Record):
    name: str
    description: str
    language: str | None
    private: bool
    stars: int
    pushed: datetime

    @property
    def key(self) -> str:
        return f"{OWNER}/{self.name}"

    @property
    def url(self) -> str:
        return f"https://github.acme.example/{self.key}"


class GithubIssue(Record):
    repository: str
    number: int
    title: str
    body: str
    state: IssueState
    author: str
    assignee: str | None
    labels: tuple[str, ...] = ()
    created: datetime
    updated: datetime
    related: Related = Related()

    @property
    def key(self) -> str:
        return f"{OWNER}/{self.repository}#{self.number}"

    @property
    def url(self) -> str:
        return f"https://github.acme.example/{OWNER}/{self.repository}/issues/{self.number}"


class Rollout(Value):
    """The revision that an application gets when a pull request is merged."""

    application: str
    revision: str
    image: str


class PullRequest(Record):
    repository: str
    number: int
    title: str
    body: str
    state: PullRequestState
    author: str
    reviewers: tuple[str, ...]
    branch: str
    changes: str
    created: datetime
    updated: datetime
    deploys: Rollout | None = None
    related: Related = Related()

    @property
    def key(self) -> str:
        return f"{OWNER}/{self.repository}#{self.number}"

    @property
    def url(self) -> str:
        return f"https://github.acme.example/{OWNER}/{self.repository}/pull/{self.number}"


class Service(Record):
    name: str
    description: str
    schedule: str

    @property
    def key(self) -> str:
        return self.name


class Schedule(Record):
    name: str
    on_call: str
    next: str
    escalation: str
    start: datetime
    end: datetime

    @property
    def key(self) -> str:
        return self.name


class LogEntry(Value):
    at: datetime
    text: str


class Incident(Record):
    number: int
    title: str
    service: str
    status: IncidentStatus
    urgency: Literal["high", "low"]
    assignee: str
    created: datetime
    log: tuple[LogEntry, ...]
    related: Related = Related()

    @property
    def key(self) -> str:
        return f"P{self.number}"

    @property
    def url(self) -> str:
        return f"https://acme.pagerduty.example/incidents/{self.key}"
