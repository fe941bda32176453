"""The executor: one assignment is one run, and every event of the run is stored in the event log.

`execute` writes the end of its run itself, also when it is cancelled. Subscribers read the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.approvals import audit_facts
from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.events import Canceled, Ending, Event, Failed, FinalResult, Form, InputRequired
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.forms.replies import AskAgain, Resume, ask_later, interpret
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.policy.decisions import NO_POLICY, Policy
from ai_platform_engineering.runs.failures import failure_of
from ai_platform_engineering.runs.outcomes import InterruptedRun
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog, RecordedEffect, SupersededError
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent, GraphRun, Resumption
from ai_platform_engineering.utils.a2a_common.codec.decoder import decode_updates
from ai_platform_engineering.utils.a2a_common.codec.labels import stopped
from ai_platform_engineering.utils.a2a_common.protocol import WAITING_STATES
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.a2a_common.server.approvals import (
    ApprovalRules,
    TaskApprovals,
    decision_id,
    offered,
)
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of, reply_of, request_context
from ai_platform_engineering.utils.a2a_common.server.metrics import RunMetrics
from ai_platform_engineering.utils.a2a_common.server.recorder import Recorder, joining_interval
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import RunMeter, UsageLedger
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from ai_platform_engineering.utils.a2a_common.wire import StreamState, WireEvent, is_handed_over, restore
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)


class StoppedError(ReadableError):
    """The server was shut down during the run."""

    code = "stopped"

    def __init__(self, agent: str) -> None:
        super().__init__(stopped(agent))


class RunExecutor:
    """Runs an agent's graph for each assignment."""

    def __init__(
        self,
        agent: BaseLangGraphAgent,
        log: EventLog,
        settings: Settings,
        metrics: RunMetrics | None = None,
        audit: Audit = NO_AUDIT,
        policy: Policy | None = None,
        usage: UsageLedger | None = None,
    ) -> None:
        self._agent = agent
        self._usage = usage
        self._audit = audit
        self._policy = policy or Policy()
        self._log = log
        self._endings = TaskEndings(log, agent.name)
        self._interval = settings.text_coalesce_ms / 1000
        self._metrics = metrics or RunMetrics([agent.name])
        self.rules = ApprovalRules.of(settings)
        self._active_runs = 0

    @property
    def resumable(self) -> bool:
        return self._log.durable and self._agent.persists

    async def execute(self, assignment: Assignment) -> bool:
        task, updates = None, list[WireEvent]()
        if not assignment.begins_task:
            updates = [entry.event for entry in await self._log.read(assignment.task_id)]
            task = await self._log.task(assignment.task_id)
        approvals = TaskApprovals(self._log, assignment.task_id, assignment.epoch, self.rules)
        request = replace(self._request(assignment, task), approval_ledger=approvals)
        if request.user is not None:
            logger.info("%s: task %s is asked by %s", request.trace_id, request.task_id, request.user)
        recorder = self._recorder(request, updates, assignment.epoch)
        history = decode_updates(self._agent.name, updates)
        begun: Sequence[Event] | None = None
        if assignment.resumes:
            self._metrics.recovered("handover" if updates and is_handed_over(updates[-1]) else "lost")
            before = decode_updates(self._agent.name, updates[: assignment.request.after])
            history, begun = before, history[len(before) :]
        message = assignment.request.message
        match _reply_to_forms(history, message):
            case AskAgain(forms):
                async with recorder:
                    recorder.put(InputRequired(forms))
                return True
            case Resume(form, answer):
                decision = ""
                if is_approval(form):
                    answer = offered(form, answer)
                    refusal = await approvals.decide(form, answer, request, message.message_id)
                    if refusal is not None:
                        async with recorder:
                            recorder.put(InputRequired(ask_later(_open_forms(history), form, answer, refusal).forms))
                        return True
                    decision = decision_id(form, message.message_id)
                self._record_facts(audit_facts.decided(form, answer, request))
                request = self._for(await approvals.requester(request.caller), request)
                work: str | Resumption = Resumption(form, answer, history, decision)
            case None:
                request = self._for(request.caller, request)
                work = question_of(message)
        self._active_runs += 1
        try:
            async with self._metered(request, recorder, work) as meter:
                run = self._agent.run(work, replace(request, usage=meter), begun)
                last = await self._record(
                    run, request, recorder, assignment, approvals, meter, is_working=_is_working(task)
                )
            if isinstance(last, InputRequired):
                known = {form.form_id for form in _open_forms(history)}
                self._record_facts(audit_facts.requested(last.forms, request, known))
            return isinstance(last, InputRequired)
        except asyncio.CancelledError:
            if assignment.handed_over:
                await self._endings.hand_over(assignment.task_id, assignment.epoch)
            raise
        finally:
            self._active_runs -= 1

    def _request(self, assignment: Assignment, task: Task | None) -> RequestContext:
        request = request_context(
            assignment.request,
            assignment.task_id,
            assignment.context_id,
            auth_token=assignment.auth_token,
            task=task,
        )
        if assignment.resumes and request.delegated and request.skills is None:
            # The log does not have the skills of a delegation. The agent's own catalog may offer others.
            request = replace(request, skills=())
        request = replace(request, audit=self._audit)
        if not self.resumable:
            return request
        effects = _RunEffects(self._log, assignment.task_id, assignment.epoch)
        return replace(request, epoch=assignment.epoch, effects=effects, is_handed_over=lambda: assignment.handed_over)

    def _for(self, requester: Principal, request: RequestContext) -> RequestContext:
        """The request as a run on behalf of `requester`, who may be another than the sender of an answer. A delegation
        comes with the rules of the policy."""
        policy = request.policy if request.delegated else self._policy.of(requester)
        return replace(
            request,
            caller=requester,
            answered_by_other=requester.owner != request.caller.owner,
            policy=None if policy is NO_POLICY else policy,
        )

    async def cancel(self, task_id: str, auth_token: str | None = None) -> None:
        task, stored = await self._log.task(task_id), await self._log.request(task_id)
        if task is None or stored is None:
            return
        request = request_context(stored, task_id, task.context_id, auth_token=auth_token, task=task)
        if task.status.state in WAITING_STATES:
            ended = await self._endings.end_waiting(task.id, Canceled())
            if ended is not None:
                await self._abandon(ended.run, request)
        else:
            await self._endings.end(task.id, Canceled(), trace_id=request.trace_id)

    async def release(self, run: InterruptedRun, for_good: bool) -> None:
        """Complete the conversation of a run that was ended from outside, or drop it `for_good`."""
        await self._agent.release(run, for_good=for_good)

    @asynccontextmanager
    async def _metered(
        self, request: RequestContext, recorder: Recorder, work: str | Resumption
    ) -> AsyncIterator[RunMeter | None]:
        """The meter of a run; None if usage is not counted."""
        if self._usage is None:
            yield None
            return
        async with self._usage.metered(request, answers_form=isinstance(work, Resumption)) as meter:
            if request.delegated:
                recorder.report(meter.report)
            yield meter

    async def _completed(
        self, event: Event, request: RequestContext, approvals: TaskApprovals, meter: RunMeter | None
    ) -> Event:
        """The event with what the server knows: the approvals that a form asks for, a budget that is nearly used up."""
        match event:
            case InputRequired(forms):
                return InputRequired(await approvals.ask(forms, request))
            case FinalResult() if meter is not None and (warning := meter.warning()) is not None:
                return replace(event, budget_warning=warning)
            case _:
                return event

    async def _record(
        self,
        run: GraphRun,
        request: RequestContext,
        recorder: Recorder,
        assignment: Assignment,
        approvals: TaskApprovals,
        meter: RunMeter | None,
        *,
        is_working: bool,
    ) -> Event | None:
        """Store the events of a run and return the last one; None if it was ended here. `is_working`: the task has that
        status already."""
        last: Event | None = None
        try:
            async with recorder:
                if not is_working:
                    await recorder.begin()
                try:
                    async with asyncio.timeout(await meter.seconds_left() if meter is not None else None) as time_limit:
                        async for event in run.events():
                            last = await self._completed(event, request, approvals, meter)
                            recorder.put(last)
                    if not isinstance(last, Ending):
                        raise RuntimeError("the run emitted no end")
                except asyncio.CancelledError:
                    if not assignment.handed_over:
                        recorder.put(*self._interrupted(run, assignment))
                        await self._abandon(run.interrupted, request)
                    raise
                except TimeoutError:
                    if meter is None or not time_limit.expired():
                        raise
                    ending = [*run.failed(await meter.time_exhausted())]
                    last = ending[-1]
                    recorder.put(*ending)
                    await self._abandon(run.interrupted, request)
        except SupersededError:
            logger.warning("%s: another process has taken the run over; this one stops", request.trace_id)
            return None
        except Exception as error:  # every failure becomes a sentence
            logger.exception("%s: the run failed", request.trace_id)
            failure = failure_of(error)
            await self._endings.end(request.task_id, Failed(failure.code, failure.sentence), epoch=assignment.epoch)
            return None
        return last

    def _record_facts(self, facts: Iterable[AuditFact]) -> None:
        for fact in facts:
            self._audit.record(fact)

    async def _abandon(self, run: InterruptedRun, request: RequestContext) -> None:
        try:
            await self._agent.abandon(run, request)
        except Exception:  # the end is stored; the next turn calls the outcome of calls without a result unknown
            logger.exception("%s: the conversation could not be completed", request.trace_id)

    def _interrupted(self, run: GraphRun, assignment: Assignment) -> Iterator[Event]:
        """The last events of a run that a person canceled or a shutdown stopped."""
        return run.canceled() if assignment.canceled else run.failed(StoppedError(self._agent.name))

    def _recorder(self, request: RequestContext, updates: Iterable[WireEvent], epoch: int | None) -> Recorder:
        state = StreamState(request.task_id, request.context_id, request.trace_id, self._agent.name)
        restore(state, updates)
        if request.delegated:
            return Recorder(self._log, state, lambda: self._interval, to_people=False, epoch=epoch)
        interval = self._interval
        return Recorder(self._log, state, lambda: joining_interval(interval, self._active_runs), epoch=epoch)


@dataclass(frozen=True, slots=True)
class _RunEffects:
    """The ledger of one run, in the event log."""

    log: EventLog
    task_id: str
    epoch: int | None

    async def begin(self, call_id: str) -> RecordedEffect | None:
        return await self.log.begin_effect(self.task_id, call_id, self.epoch)

    async def finish(self, call_id: str, result: str) -> None:
        await self.log.finish_effect(self.task_id, call_id, result, self.epoch)


def _is_working(task: Task | None) -> bool:
    return task is not None and task.status.state == TaskState.TASK_STATE_WORKING


def _reply_to_forms(history: Sequence[Event], message: Message) -> Resume | AskAgain | None:
    """How a message answers the open forms; None if none is open."""
    forms = _open_forms(history)
    return interpret(forms, reply_of(message)) if forms else None


def _open_forms(history: Sequence[Event]) -> tuple[Form, ...]:
    match history[-1:]:
        case [InputRequired(forms)]:
            return forms
        case _:
            return ()
