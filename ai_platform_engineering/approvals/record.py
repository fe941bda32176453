"""The record of an approval: what was asked for, who may decide, who decided, and whether the decision was used.

A record consists of facts that are added once and never change: the request, the decisions, the use. Each is bound to
the digest of the call. Where they are stored is not known here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved
from ai_platform_engineering.identity.principal import Principal

DIGEST: Final = "digest"
"""The key of a call's digest in an action request of a form, and in a signed decision."""

Verb = Literal["approve", "edit", "reject"]


def call_digest(agent: str, tool: str, args: Mapping[str, Any]) -> str:
    """The digest of a tool call with exactly these arguments."""
    return _digest({"agent": agent, "tool": tool, "args": args})


def form_digest(form: Form) -> str:
    """The digest of the call that an approval form asks for. The form of a foreign agent has none: its digest is that
    of the actions as they are shown."""
    match form.action_requests:
        case [{"digest": str(digest)}]:
            return digest
        case requests:
            return _digest(requests)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for a decision. Times are in seconds since 1970; None never expires."""

    digest: str
    agent: str
    tool: str
    requester: Principal
    deciders: Deciders
    created: float
    expires: float | None

    @classmethod
    def of(cls, form: Form, requester: Principal, deciders: Deciders, *, now: float, lifetime: float | None) -> Self:
        tools = [str(request.get("tool", "")) for request in form.action_requests]
        return cls(
            digest=form_digest(form),
            agent=form.agent or "",
            tool=", ".join(tools),
            requester=requester,
            deciders=deciders,
            created=now,
            expires=None if lifetime is None else now + lifetime,
        )

    def refusal(self, verb: Verb, by: Principal, requester: Principal | None = None) -> str | None:
        """Why `by` may not decide this, in a sentence; None if they may. The requester may always reject.

        `requester` replaces the stored one, where the server knew only the supervisor that delegated the work.
        """
        requester = requester or self.requester
        if verb == "reject" and by.owner == requester.owner:
            return None
        return self.deciders.refusal(by, requester)

    def is_expired(self, now: float) -> bool:
        return self.expires is not None and now >= self.expires

    def to_json(self) -> str:
        facts = {"digest": self.digest, "agent": self.agent, "tool": self.tool}
        times = {"created": self.created, "expires": self.expires}
        return json.dumps({**facts, "requester": self.requester.facts(), "deciders": self.deciders.facts(), **times})

    @classmethod
    def from_json(cls, stored: str) -> Self:
        facts = json.loads(stored)
        requester, deciders = Principal.read(facts.pop("requester")), Deciders.read(facts.pop("deciders"))
        return cls(**facts, requester=requester, deciders=deciders)


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a request. `requester` is who asked for the call."""

    verb: Verb
    digest: str
    by: Principal
    requester: Principal
    at: float

    def facts(self) -> dict[str, Any]:
        """The decision as a JSON object: the stored one, and the one that a supervisor signs for an agent."""
        people = {"by": self.by.facts(), "requester": self.requester.facts()}
        return {"verb": self.verb, DIGEST: self.digest, **people, "at": self.at}

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        return cls(
            verb=facts["verb"],
            digest=facts[DIGEST],
            by=Principal.read(facts["by"]),
            requester=Principal.read(facts["requester"]),
            at=float(facts["at"]),
        )


@dataclass(frozen=True, slots=True)
class ApprovalUse:
    """The one use of an approval. `digest` is that of the call that ran: after an edit, with the edited arguments."""

    digest: str
    call: str
    decision: str
    at: float

    def to_json(self) -> str:
        return json.dumps({"digest": self.digest, "call": self.call, "decision": self.decision, "at": self.at})

    @classmethod
    def from_json(cls, stored: str) -> Self:
        return cls(**json.loads(stored))


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """All facts about one approval. `decisions` are by id, in the order of their times."""

    request: ApprovalRequest
    decisions: Mapping[str, Decision]
    use: ApprovalUse | None

    @property
    def decision(self) -> Decision | None:
        """The decision that counts: the used one, else the last one."""
        if self.use is not None and self.use.decision in self.decisions:
            return self.decisions[self.use.decision]
        return next(reversed([*self.decisions.values()]), None)

    def facts(self) -> dict[str, Any]:
        """The record for people, as a JSON object."""
        request, decision, use = self.request, self.decision, self.use
        return {
            "agent": request.agent,
            "tool": request.tool,
            "digest": request.digest,
            "requested_by": _who(request.requester),
            "may_decide": request.deciders.in_words(),
            "deciders": request.deciders.facts(),
            "created": in_iso(request.created),
            "expires": None if request.expires is None else in_iso(request.expires),
            "decision": decision and decision.verb,
            "decided_by": decision and _who(decision.by),
            "decided_at": decision and in_iso(decision.at),
            "used_at": use and in_iso(use.at),
            "approved_digest": use and use.digest,
        }


def verb_of(answer: Answer) -> Verb:
    match answer:
        case Approved(arguments=None):
            return "approve"
        case Approved():
            return "edit"
        case _:
            return "reject"


def in_iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _who(principal: Principal) -> str:
    return principal.subject or "anonymous"


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()
