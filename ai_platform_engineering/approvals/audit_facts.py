"""The facts of approvals for the audit record: which calls wait for one, and who decided how."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ai_platform_engineering.audit.record import AuditFact, Kind, Outcome, arguments_digest
from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


def requested(forms: Iterable[Form], context: RequestContext, shown: Collection[str] = ()) -> Iterator[AuditFact]:
    """The calls that wait for an approval, without those of the forms `shown` before."""
    for form in forms:
        if form.form_id not in shown:
            yield from _facts("approval_requested", "", form, context)


def decided(form: Form, answer: Answer, context: RequestContext) -> Iterator[AuditFact]:
    """The decision about the calls of a form, by the caller of the request."""
    match answer:
        case Approved(None):
            outcome: Outcome = "approved"
        case Approved():
            outcome = "edited"
        case Rejected() | Dismissed():
            outcome = "rejected"
        case Submitted():
            return
    yield from _facts("approval_decided", outcome, form, context)


def _facts(kind: Kind, outcome: Outcome, form: Form, context: RequestContext) -> Iterator[AuditFact]:
    for action in form.action_requests:
        args: Any = action.get("args")
        yield AuditFact(
            kind,
            context.caller,
            task=context.task_id,
            conversation=context.context_id,
            agent=str(action.get("agent") or form.agent or ""),
            tool=str(action.get("tool") or ""),
            arguments=arguments_digest(args) if isinstance(args, Mapping) else "",
            outcome=outcome,
            target=form.form_id,
        )
