"""GitHub in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer
from ai_platform_engineering.sandbox.records import (
    OWNER,
    Application,
    GithubIssue,
    GithubRepository,
    PullRequest,
    Revision,
    Rollout,
)
from ai_platform_engineering.sandbox.store import SandboxSession, SandboxStore
from ai_platform_engineering.sandbox.tools import Headline, choice, contains_words, find_person, new_server, unknown
from ai_platform_engineering.settings import Settings

IssueFilter = Literal["open", "closed", "all"]
PullRequestFilter = Literal["open", "closed", "merged", "all"]
RepositoryArgument = Annotated[str, Field(description="Name of the repository, for example payments-api.")]
RepositoryFilter = Annotated[str | None, Field(description="Only those of the repository with this name.")]
Number = Annotated[int, Field(ge=1, description="Number within the repository, for example 57.")]


def server(settings: Settings) -> ToolServer:
    """The MCP server over the sandbox file of these settings."""
    github = GitHub(SandboxStore.of(settings))
    return new_server(
        "github",
        reads=[
            github.list_repositories,
            github.get_repository,
            github.list_issues,
            github.get_issue,
            github.list_pull_requests,
            github.get_pull_request,
        ],
        writes=[github.create_issue, github.create_repository, github.merge_pull_request],
    )


@dataclass(frozen=True)
class GitHub:
    store: SandboxStore

    def list_repositories(
        self,
        query: Annotated[
            str | None, Field(description="NonEmptyText that the name, description or language has to contain.")
        ] = None,
    ) -> dict[str, Any]:
        """List or search GitHub repositories."""
        with self.store.read() as session:
            repositories = [
                _repository_summary(repository)
                for repository in session.all(GithubRepository)
                if query is None
                or contains_words(query, repository.key, repository.description, repository.language or "")
            ]
        return {"total": len(repositories), "repositories": repositories}

    def get_repository(self, repository: RepositoryArgument) -> dict[str, Any]:
        """Show one GitHub repository with its counts of open issues and pull requests."""
        with self.store.read() as session:
            found = _repository(session, repository)
            issues = [i for i in session.all(GithubIssue) if i.repository == found.name and i.state == "open"]
            pulls = [p for p in session.all(PullRequest) if p.repository == found.name and p.state == "open"]
        return {
            **_repository_summary(found),
            "stars": found.stars,
            "pushed": found.pushed,
            "open_issues": len(issues),
            "open_pull_requests": len(pulls),
        }

    def list_issues(
        self,
        repository: RepositoryFilter = None,
        state: Annotated[
            IssueFilter, choice(*get_args(IssueFilter)), Field(description="Only issues in this state.")
        ] = "open",
        assignee: Annotated[str | None, Field(description="Only issues of this login, or `me`.")] = None,
    ) -> dict[str, Any]:
        """List GitHub issues of all repositories or of one, the most recently updated first."""
        with self.store.read() as session:
            name = None if repository is None else _repository(session, repository).name
            login = None if assignee is None else find_person(session, assignee).login
            now = session.organization().now
            issues = [
                issue
                for issue in session.all(GithubIssue)
                if name in (None, issue.repository)
                and state in ("all", issue.state)
                and login in (None, issue.assignee)
            ]
        issues.sort(key=lambda issue: issue.updated, reverse=True)
        return {"total": len(issues), "as_of": now, "issues": [_issue_summary(issue) for issue in issues]}

    def get_issue(self, repository: RepositoryArgument, number: Number) -> dict[str, Any]:
        """Show one GitHub issue with its text and what is related to it."""
        with self.store.read() as session:
            name = _repository(session, repository).name
            issue = session.find(GithubIssue, f"{OWNER}/{name}#{number}")
            if issue is None:
                raise unknown(f"issue in {name} with number", number, _numbers(session.all(GithubIssue), name))
        details = {
            **_issue_summary(issue),
            "body": issue.body,
            "related": issue.related.listed(),
        }
        return {key: value for key, value in details.items() if value}

    def list_pull_requests(
        self,
        repository: RepositoryFilter = None,
        state: Annotated[
            PullRequestFilter,
            choice(*get_args(PullRequestFilter)),
            Field(description="Only pull requests in this state."),
        ] = "open",
        author: Annotated[str | None, Field(description="Only pull requests of this login, or `me`.")] = None,
    ) -> dict[str, Any]:
        """List GitHub pull requests of all repositories or of one, the most recently updated first."""
        with self.store.read() as session:
            name = None if repository is None else _repository(session, repository).name
            login = None if author is None else find_person(session, author).login
            now = session.organization().now
            pulls = [
                pull
                for pull in session.all(PullRequest)
                if name in (None, pull.repository) and state in ("all", pull.state) and login in (None, pull.author)
            ]
        pulls.sort(key=lambda pull: pull.updated, reverse=True)
        return {"total": len(pulls), "as_of": now, "pull_requests": [_pull_summary(pull) for pull in pulls]}

    def get_pull_request(self, repository: RepositoryArgument, number: Number) -> dict[str, Any]:
        """Show one GitHub pull request with its changes, reviewers and what is related to it."""
        with self.store.read() as session:
            pull = _pull_request(session, repository, number)
        details = {
            **_pull_summary(pull),
            "body": pull.body,
            "changes": pull.changes,
            "branch": pull.branch,
            "reviewers": pull.reviewers,
            "related": pull.related.listed(),
        }
        return {key: value for key, value in details.items() if value}

    def create_issue(
        self,
        repository: RepositoryArgument,
        title: Annotated[Headline, Field(description="One line that says what it is about.")],
        body: Annotated[str, Field(description="What happens, and what is wanted instead.")] = "",
        assignee: Annotated[str | None, Field(description="Login of who is to work on it, or `me`.")] = None,
    ) -> dict[str, Any]:
        """Create a GitHub issue."""
        with self.store.write() as session:
            name = _repository(session, repository).name
            login = None if assignee is None else find_person(session, assignee).login
            now = session.advance_clock()
            issue = GithubIssue(
                repository=name,
                number=_next_number(session, name),
                title=title,
                body=body.strip(),
                state="open",
                author=session.organization().me,
                assignee=login,
                created=now,
                updated=now,
            )
            session.put(issue)
        return {"message": f"Created {issue.key}.", **_issue_summary(issue)}

    def create_repository(
        self,
        name: Annotated[str, Field(description="Name of the new repository: letters, digits, `-`, `_` and `.`.")],
        description: Annotated[str, Field(description="One line that says what it is for.")] = "",
        private: Annotated[bool, Field(description="Whether only members of the organization see it.")] = True,
    ) -> dict[str, Any]:
        """Create a GitHub repository."""
        wanted = _bare(name)
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", wanted) or wanted in (".", ".."):
            raise ToolError(f"{name!r} is no name for a repository. Use up to 100 letters, digits, '-', '_' and '.'.")
        with self.store.write() as session:
            if (existing := session.find(GithubRepository, f"{OWNER}/{wanted}")) is not None:
                raise ToolError(f"A repository {existing.key} exists already: {existing.url}. Choose another name.")
            repository = GithubRepository(
                name=wanted,
                description=description,
                language=None,
                private=private,
                stars=0,
                pushed=session.advance_clock(),
            )
            session.put(repository)
        return {"message": f"Created {repository.key}.", **_repository_summary(repository)}

    def merge_pull_request(self, repository: RepositoryArgument, number: Number) -> dict[str, Any]:
        """Merge an open GitHub pull request."""
        with self.store.write() as session:
            pull = _pull_request(session, repository, number)
            if pull.state != "open":
                raise ToolError(f"{pull.key} is {pull.state} already; only an open pull request can be merged.")
            merged = pull.replace(state="merged", updated=session.advance_clock())
            session.put(merged)
            note = {} if merged.deploys is None else {"deployment": _commit(session, merged, merged.deploys)}
        return {"message": f"Merged {merged.key}.", **_pull_summary(merged), **note}


def _commit(session: SandboxSession, pull: PullRequest, rollout: Rollout) -> str:
    """Add the merged change as the application's desired revision; returns a sentence that says so."""
    application = session.find(Application, rollout.application)
    if application is None:
        raise unknown("application", rollout.application, (known.name for known in session.all(Application)))
    revision = Revision(
        revision=rollout.revision, image=rollout.image, author=pull.author, message=pull.title, pull_request=pull.key
    )
    session.put(application.replace(revisions=(*application.revisions, revision)))
    return f"The application {application.name} is out of sync now; sync it to deploy revision {rollout.revision}."


def _bare(repository: str) -> str:
    owner, slash, name = repository.strip().partition("/")
    return name if slash and owner.casefold() == OWNER else repository.strip()


def _repository(session: SandboxSession, name: str) -> GithubRepository:
    found = session.find(GithubRepository, f"{OWNER}/{_bare(name)}")
    if found is None:
        raise unknown("repository", name, (repository.key for repository in session.all(GithubRepository)))
    return found


def _pull_request(session: SandboxSession, repository: str, number: int) -> PullRequest:
    name = _repository(session, repository).name
    found = session.find(PullRequest, f"{OWNER}/{name}#{number}")
    if found is None:
        raise unknown(f"pull request in {name} with number", number, _numbers(session.all(PullRequest), name))
    return found


def _numbers(entries: Sequence[GithubIssue | PullRequest], repository: str) -> list[str]:
    return [str(entry.number) for entry in entries if entry.repository == repository] or ["none so far"]


def _next_number(session: SandboxSession, repository: str) -> int:
    """Issues and pull requests of a repository share one sequence of numbers."""
    entries: list[GithubIssue | PullRequest] = [*session.all(GithubIssue), *session.all(PullRequest)]
    return 1 + max((entry.number for entry in entries if entry.repository == repository), default=0)


def _repository_summary(repository: GithubRepository) -> dict[str, Any]:
    summary = {
        "repository": repository.key,
        "description": repository.description,
        "language": repository.language,
        "visibility": "private" if repository.private else "public",
        "url": repository.url,
    }
    return {key: value for key, value in summary.items() if value}


def _issue_summary(issue: GithubIssue) -> dict[str, Any]:
    return {
        "repository": f"{OWNER}/{issue.repository}",
        "number": issue.number,
        "title": issue.title,
        "state": issue.state,
        "author": issue.author,
        "assignee": issue.assignee,
        "labels": issue.labels,
        "created": issue.created,
        "updated": issue.updated,
        "url": issue.url,
    }


def _pull_summary(pull: PullRequest) -> dict[str, Any]:
    return {
        "repository": f"{OWNER}/{pull.repository}",
        "number": pull.number,
        "title": pull.title,
        "state": pull.state,
        "author": pull.author,
        "created": pull.created,
        "updated": pull.updated,
        "url": pull.url,
    }
