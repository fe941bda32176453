from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

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
    Related,
    Schedule,
    Service,
    Ticket,
    TicketProject,
)
from ai_platform_engineering.sandbox.seed import seed_records

RECORDS = seed_records()
KEYS = {kind: {record.key for record in RECORDS if type(record) is kind} for kind in {type(r) for r in RECORDS}}
BACK = {Application: "applications", Ticket: "tickets", GithubIssue: "github_issues", Incident: "incidents"}
BACK[PullRequest] = "pull_requests"


def of(kind: type[Record], key: str) -> Record:
    return next(record for record in RECORDS if type(record) is kind and record.key == key)


def references(record: Record) -> Iterator[tuple[type[Record], str | None]]:
    """Every field that names another record."""
    match record:
        case Organization():
            yield Employee, record.me
        case Application():
            yield ApplicationProject, record.project
            for revision in record.revisions:
                yield Employee, revision.author
                yield PullRequest, revision.pull_request
            for deployment in record.history:
                yield Employee, deployment.initiated_by
        case TicketProject():
            yield Employee, record.lead
        case Ticket():
            yield TicketProject, record.project
            yield from ((Employee, login) for login in (record.assignee, record.reporter))
            yield from ((Employee, comment.author) for comment in record.comments)
        case GithubIssue():
            yield GithubRepository, f"acme/{record.repository}"
            yield from ((Employee, login) for login in (record.assignee, record.author))
        case PullRequest():
            yield GithubRepository, f"acme/{record.repository}"
            yield from ((Employee, login) for login in (record.author, *record.reviewers))
            yield Application, record.deploys.application if record.deploys else None
        case Service():
            yield Schedule, record.schedule
        case Schedule():
            yield from ((Employee, login) for login in (record.on_call, record.next, record.escalation))
        case Incident():
            yield Service, record.service
            yield Employee, record.assignee
    yield from related(record)


def related(record: Record) -> Iterator[tuple[type[Record], str]]:
    links: Related = getattr(record, "related", Related())
    for kind, field in BACK.items():
        yield from ((kind, key) for key in getattr(links, field))


def mentions(record: Record) -> Iterator[tuple[set[type[Record]], str]]:
    """Keys that occur in texts."""
    text = record.model_dump_json()
    yield from (({Ticket}, key) for key in re.findall(r"\b(?:SHOP|PLAT|SEC)-\d+", text))
    yield from (({GithubIssue, PullRequest}, key) for key in re.findall(r"\bacme/[a-z-]+#\d+", text))
    yield from (({Incident}, key) for key in re.findall(r"\bP\d{4}\b", text))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{type(record).__name__}:{record.key}")
def test_every_reference_resolves(record: Record) -> None:
    dangling = [(kind.__name__, key) for kind, key in references(record) if key is not None and key not in KEYS[kind]]
    dangling += [("mention", key) for kinds, key in mentions(record) if not any(key in KEYS[kind] for kind in kinds)]
    assert dangling == []


def test_the_broken_application_is_connected_both_ways() -> None:
    story = [
        of(Application, "payments-api"),
        of(Ticket, "SHOP-118"),
        of(PullRequest, "acme/gitops#412"),
        of(PullRequest, "acme/gitops#415"),
        of(Incident, "P4711"),
    ]
    for record in story:
        linked = {key for _, key in related(record)}
        others = {other.key for other in story if type(other) is not type(record)}
        assert others <= linked, record.key


def test_keys_are_unique_and_numbers_are_shared_by_issues_and_pull_requests() -> None:
    keys = Counter((type(record).__name__, record.key) for record in RECORDS)
    numbers = Counter(record.key for record in RECORDS if isinstance(record, GithubIssue | PullRequest))
    assert [key for key, count in (keys + numbers).items() if count > 1] == []


def test_applications_have_run_what_they_run() -> None:
    for application in (record for record in RECORDS if isinstance(record, Application)):
        known = {revision.revision for revision in application.revisions}
        assert {deployment.revision for deployment in application.history} <= known
        assert application.history[-1].revision == application.live
        assert application.running.revision == application.live


def test_nothing_happens_after_now_or_before_it_began() -> None:
    now = next(record.now for record in RECORDS if isinstance(record, Organization))
    for record in RECORDS:
        moments = [getattr(record, field) for field in ("created", "updated", "pushed") if hasattr(record, field)]
        moments += [entry.at for entry in getattr(record, "log", ())]
        moments += [entry.created for entry in getattr(record, "comments", ())]
        moments += [entry.deployed_at for entry in getattr(record, "history", ())]
        assert moments == sorted(moments) or not hasattr(record, "created"), record.key
        assert all(moment <= now for moment in moments), record.key


def test_addresses_lead_nowhere_real() -> None:
    text = "".join(record.model_dump_json() + getattr(record, "url", "") for record in RECORDS)
    hosts = set(re.findall(r"https?://([^/\s\"]+)", text))
    assert hosts
    assert all(host.endswith(".example") for host in hosts)
