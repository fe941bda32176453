"""The approvals of one task: records in the event log, next to the ledger of effects.

A run that asks creates the record, an answer adds a decision if its sender may decide, and the call that runs uses the
approval. Only the first use counts, whatever is sent or repeated.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.approvals.effects import EFFECTS
from ai_platform_engineering.approvals.record import (
    ApprovalRecord,
    ApprovalRequest,
    ApprovalUse,
    Decision,
    in_iso,
    verb_of,
)
from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.request_context import ApprovalUsed, RequestContext

DecidersOf = Callable[[Form, RequestContext], Deciders]
"""Who may decide what an approval form asks for, in the run of a request."""

_PREFIX: Final = "approval/"
_REQUESTER: Final = "requester"
_NOT_SIGNED: Final = (
    "A supervisor asked for this, and only a decision that it has signed counts. Answer the form at the supervisor."
)
_OTHER_CALL: Final = "The signed decision is about other arguments than those that this form shows."


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """Who may approve, and for how many seconds; None for no limit. `clock` is in seconds since 1970."""

    deciders: DecidersOf
    lifetime: float | None = None
    clock: Callable[[], float] = field(default=time.time, repr=False)

    @classmethod
    def of(cls, settings: Settings) -> ApprovalRules:
        deciders = Deciders.parse(settings.approvers, four_eyes=settings.approval_four_eyes)
        seconds = settings.approval_expiry or settings.form_expiry_hours * 3600
        return cls(lambda form, request: _by_policy(form, request) or deciders, seconds or None)


@dataclass(frozen=True, slots=True)
class TaskApprovals:
    """The records of a task, written by the run that has the claim `epoch`."""

    log: EventLog
    task_id: str
    epoch: int | None
    rules: ApprovalRules

    async def ask(self, forms: Sequence[Form], request: RequestContext) -> tuple[Form, ...]:
        """Create the records of the approvals in `forms`. Returns the forms, which say who may approve."""
        requester = await self.requester(request.caller)
        return tuple([await self._asked(form, request, requester) if is_approval(form) else form for form in forms])

    async def decide(self, form: Form, answer: Answer, request: RequestContext, message_id: str) -> str | None:
        """Record the decision in `answer`. Returns a sentence if the sender of the message may not decide this."""
        asked = await self._request(form)
        if asked is None:
            asked = await self._create(form, request, await self.requester(request.caller))
        verb = verb_of(answer)
        decision = Decision(verb, asked.digest, request.caller, asked.requester, self.rules.clock())
        if request.delegated:
            if request.approval is None:
                return _NOT_SIGNED
            decision = Decision.read(request.approval)
            if (decision.digest, decision.verb) != (asked.digest, verb):
                return _OTHER_CALL
        if (refusal := asked.refusal(verb, decision.by, decision.requester)) is not None:
            return refusal
        key = _key(decision_id(form, message_id))
        await self.log.begin_effect(self.task_id, key, self.epoch, result=json.dumps(decision.facts()))
        return None

    async def use(self, decision_id: str, digest: str, used_digest: str, call: str) -> ApprovalUsed:
        """Use the approval for a call with `digest`. `call` is its id, so that the same call finds its use again."""
        form_id, _, _ = decision_id.partition("/")
        record = await read_record(self.log, self.task_id, form_id)
        decision = record.decisions.get(decision_id) if record else None
        if record is None or decision is None or decision.verb == "reject":
            return ApprovalUsed(refusal="no approval of it is recorded")
        if record.request.digest != digest:
            return ApprovalUsed(refusal="its arguments are not those that were approved")
        if record.use is None and record.request.is_expired(self.rules.clock()):
            return ApprovalUsed(
                refusal=f"the request for its approval expired at {in_iso(record.request.expires or 0)}"
            )
        use = ApprovalUse(used_digest, call, decision_id, self.rules.clock())
        known = await self.log.begin_effect(self.task_id, _key(f"{form_id}/used"), self.epoch, result=use.to_json())
        if known is None:
            return ApprovalUsed(is_first=True)
        if ApprovalUse.from_json(known.result or "{}").call != call:
            return ApprovalUsed(refusal="its approval was used already")
        return ApprovalUsed(is_first=False)

    async def signed_facts(self, decision_id: str) -> Mapping[str, Any] | None:
        """The decision as the supervisor signs it for a remote agent."""
        record = await read_record(self.log, self.task_id, decision_id.partition("/")[0])
        decision = record.decisions.get(decision_id) if record else None
        return None if decision is None else decision.facts()

    async def _asked(self, form: Form, request: RequestContext, requester: Principal) -> Form:
        asked = await self._request(form) or await self._create(form, request, requester)
        if asked.deciders == Deciders():
            return form
        return _with_deciders(form, asked.deciders)

    async def _create(self, form: Form, request: RequestContext, requester: Principal) -> ApprovalRequest:
        deciders = self.rules.deciders(form, request)
        asked = ApprovalRequest.of(form, requester, deciders, now=self.rules.clock(), lifetime=self.rules.lifetime)
        known = await self.log.begin_effect(
            self.task_id, _key(f"{form.form_id}/asked"), self.epoch, result=asked.to_json()
        )
        return asked if known is None else ApprovalRequest.from_json(known.result or "")

    async def _request(self, form: Form) -> ApprovalRequest | None:
        record = await read_record(self.log, self.task_id, form.form_id)
        return None if record is None else record.request

    async def requester(self, caller: Principal) -> Principal:
        """The caller of the first message of the task. The first form stores it, before there is a later message."""
        known = await self.log.begin_effect(self.task_id, _REQUESTER, self.epoch, result=caller.to_json())
        return caller if known is None else Principal.from_json(known.result)


def decision_id(form: Form, message_id: str) -> str:
    """The id of the decision that a message makes about a form: the same if the message is worked on again."""
    return f"{form.form_id}/{hashlib.sha256(message_id.encode()).hexdigest()[:32]}"


def _by_policy(form: Form, request: RequestContext) -> Deciders | None:
    """The deciders of the policy's rule about a call of the form; None if no rule names any."""
    if (policy := request.policy) is None:
        return None
    for action in form.action_requests:
        args, effect = action.get("args"), action.get("effect")
        decision = policy.call(
            str(action.get("agent") or form.agent or ""),
            str(action.get("tool") or ""),
            args if isinstance(args, Mapping) else {},
            effect if effect in EFFECTS else "destructive",
        )
        if decision.approvers != Deciders():
            return decision.approvers
    return None


def offered(form: Form, answer: Answer) -> Answer:
    """The answer, remembered only if the form offers that."""
    if isinstance(answer, Approved) and not any("remember" in request for request in form.action_requests):
        return replace(answer, remember=False)
    return answer


async def read_record(log: EventLog, task_id: str, form_id: str) -> ApprovalRecord | None:
    """The record of an approval form; None if there is none."""
    start = _key(f"{form_id}/")
    facts = {key: effect.result for key, effect in (await log.effects(task_id, start)).items() if effect.result}
    asked, used = facts.pop(f"{start}asked", None), facts.pop(f"{start}used", None)
    if asked is None:
        return None
    decisions = sorted(
        ((key.removeprefix(_PREFIX), Decision.read(json.loads(fact))) for key, fact in facts.items()),
        key=lambda item: item[1].at,
    )
    return ApprovalRecord(
        ApprovalRequest.from_json(asked), dict(decisions), None if used is None else ApprovalUse.from_json(used)
    )


def _key(name: str) -> str:
    return f"{_PREFIX}{name}"


def _with_deciders(form: Form, deciders: Deciders) -> Form:
    """The form with a sentence that says who may approve. Four eyes see each call, so none is approved in advance."""
    words = deciders.in_words()
    if words not in form.description:
        form = replace(form, description=f"{form.description} {words}".lstrip())
    if not deciders.four_eyes:
        return form
    return replace(
        form,
        fields=tuple(shown for shown in form.fields if shown.field_name != "remember"),
        action_requests=tuple(
            {key: value for key, value in request.items() if key != "remember"} for request in form.action_requests
        ),
    )
