"""The records of approvals in the event log."""

from __future__ import annotations

from dataclasses import replace

import pytest
from a2a.types.a2a_pb2 import Task

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.approvals.form import approval_form
from ai_platform_engineering.approvals.record import Decision, form_digest
from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Approved, Rejected
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.policy.decisions import PrincipalPolicy, Rule
from ai_platform_engineering.policy.tool_pattern import ToolPattern
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.a2a_common.server.approvals import (
    ApprovalRules,
    TaskApprovals,
    decision_id,
    read_record,
)

ADA, BOB = Principal("token", "ada"), Principal("token", "bob", frozenset({"sre"}))
CONTEXT = RequestContext("c", "t", "trace")
FORM = replace(approval_form("depot", "Depot", "drop", {"name": "web"}, {}, "destructive"), form_id="f1")
DIGEST = form_digest(FORM)


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def log() -> MemoryEventLog:
    log = MemoryEventLog()
    await log.create(Task(id="t", context_id="c"), ADA)
    return log


def approvals(log: MemoryEventLog, deciders: Deciders | None = None, clock: Clock | None = None) -> TaskApprovals:
    found = deciders or Deciders()
    return TaskApprovals(log, "t", None, ApprovalRules(lambda _form, _request: found, 60.0, clock or Clock()))


async def decided(ledger: TaskApprovals, by: Principal = BOB, message_id: str = "m1") -> str:
    assert await ledger.decide(FORM, Approved(), replace(CONTEXT, caller=by), message_id) is None
    return decision_id(FORM, message_id)


async def test_the_requester_is_the_caller_of_the_first_form(log: MemoryEventLog) -> None:
    ledger = approvals(log, Deciders(groups=frozenset({"sre"})))
    values = Form("f0", "Which one?")
    assert await ledger.ask([values], replace(CONTEXT, caller=ADA)) == (values,)
    [shown] = await ledger.ask([FORM], replace(CONTEXT, caller=BOB))  # Bob answered the first form
    assert shown.description.endswith("Only members of sre may approve this.")
    assert await ledger.ask([shown], replace(CONTEXT, caller=BOB)) == (shown,), "the sentence is added once"
    record = await read_record(log, "t", "f1")
    assert record is not None
    assert (record.request.requester, record.decision, record.use) == (ADA, None, None)


async def test_an_approval_is_for_one_call_with_one_digest(log: MemoryEventLog) -> None:
    ledger = approvals(log)
    await ledger.ask([FORM], replace(CONTEXT, caller=ADA))
    approved = await decided(ledger)
    assert (await ledger.use(approved, "other", "other", "call")).refusal is not None
    assert (await ledger.use(approved, DIGEST, DIGEST, "call")).is_first
    again = await ledger.use(approved, DIGEST, DIGEST, "call")
    assert (again.is_first, again.refusal) == (False, None)
    assert (await ledger.use(approved, DIGEST, DIGEST, "another call")).refusal == "its approval was used already"
    second = await decided(ledger, message_id="m2")
    assert (await ledger.use(second, DIGEST, DIGEST, "another call")).refusal == "its approval was used already"


async def test_nothing_else_than_a_recorded_approval_is_used(log: MemoryEventLog) -> None:
    ledger = approvals(log)
    await ledger.ask([FORM], replace(CONTEXT, caller=ADA))
    assert await ledger.decide(FORM, Rejected(), replace(CONTEXT, caller=BOB), "m1") is None
    for unusable in (decision_id(FORM, "m1"), decision_id(FORM, "m2"), "f2/x", ""):
        assert (await ledger.use(unusable, DIGEST, DIGEST, "call")).refusal == "no approval of it is recorded"


async def test_an_approval_expires_until_it_is_used(log: MemoryEventLog) -> None:
    clock = Clock()
    ledger = approvals(log, clock=clock)
    await ledger.ask([FORM], replace(CONTEXT, caller=ADA))
    approved = await decided(ledger)
    clock.now += 60
    assert "expired at" in ((await ledger.use(approved, DIGEST, DIGEST, "call")).refusal or "")


@pytest.mark.parametrize(
    ("signed", "why"),
    [
        (None, "only a decision that it has signed counts"),
        (Decision("approve", "another call", BOB, ADA, 0.0), "about other arguments"),
        (Decision("reject", DIGEST, BOB, ADA, 0.0), "about other arguments"),
        (Decision("approve", DIGEST, ADA, ADA, 0.0), "another person has to approve it"),
    ],
)
async def test_an_agent_takes_a_decision_that_its_supervisor_signed_for_this_call(
    log: MemoryEventLog, signed: Decision | None, why: str
) -> None:
    ledger = approvals(log, Deciders(four_eyes=True))
    await ledger.ask([FORM], replace(CONTEXT, caller=Principal("key", "supervisor")))
    request = replace(CONTEXT, delegated=True, caller=BOB)
    refusal = await ledger.decide(FORM, Approved(), replace(request, approval=signed and signed.facts()), "m1")
    assert refusal is not None
    assert why in refusal
    valid = Decision("approve", DIGEST, BOB, ADA, 7.0)
    assert await ledger.decide(FORM, Approved(), replace(request, approval=valid.facts()), "m2") is None
    record = await read_record(log, "t", "f1")
    assert record is not None
    assert record.decision == valid


async def test_a_rule_of_the_policy_names_the_deciders(log: MemoryEventLog) -> None:
    rule = Rule("r", frozenset({"*"}), "approve", (ToolPattern.parse("depot.drop"),), approvers=Deciders.parse("eve"))
    rules = ApprovalRules.of(load_settings({"APPROVERS": "bob"}, None))
    ledger = TaskApprovals(log, "t", None, rules)
    [shown] = await ledger.ask([FORM], replace(CONTEXT, policy=PrincipalPolicy((rule,))))
    assert shown.description.endswith("Only eve may approve this.")
    [other] = await ledger.ask([replace(FORM, form_id="f2")], CONTEXT)
    assert other.description.endswith("Only bob may approve this.")
