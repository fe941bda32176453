"""The sample data of the sandbox, read from `seed.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from ai_platform_engineering.sandbox.records import (
    Application,
    ApplicationProject,
    Employee,
    GithubIssue,
    GithubRepository,
    Incident,
    Organization,
    PullRequest,
    Record,
    Schedule,
    Service,
    Ticket,
    TicketProject,
)
from ai_platform_engineering.utils.yaml_files import parse

_SECTIONS: Mapping[str, type[Record]] = {
    "people": Employee,
    "application_projects": ApplicationProject,
    "applications": Application,
    "ticket_projects": TicketProject,
    "tickets": Ticket,
    "repositories": GithubRepository,
    "github_issues": GithubIssue,
    "pull_requests": PullRequest,
    "services": Service,
    "schedules": Schedule,
    "incidents": Incident,
}


def seed_records() -> list[Record]:
    """Every record of the sandbox in its initial state."""
    text = files(__package__).joinpath("seed.yaml").read_text(encoding="utf-8")
    content = parse(text)
    records: list[Record] = [Organization.model_validate(content["organization"])]
    for section, kind in _SECTIONS.items():
        records += (kind.model_validate(entry) for entry in content[section])
    return records
