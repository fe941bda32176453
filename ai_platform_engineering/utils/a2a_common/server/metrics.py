"""The numbers of one process behind `/metrics`, counted from the moment it starts.

Plain numbers: `metrics_page.py` renders them with prometheus_client, which is imported with the first scrape;
`worker_metrics.py` adds those of several processes. Runs and calls are counted from the entries of the event log. Label
values are bounded, and contain no text of people or models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from a2a.types.a2a_pb2 import Artifact, TaskState, TaskStatusUpdateEvent
from google.protobuf.struct_pb2 import Struct

from ai_platform_engineering.audit.log import AuditState
from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.storage.store_timer import Store, StoreKind, StoreOperation
from ai_platform_engineering.utils.a2a_common.codec.decoding import kind_of
from ai_platform_engineering.utils.a2a_common.server.run_counts import Labels, RunCounts
from ai_platform_engineering.utils.errors import FailureCode

RunOutcome = Literal["completed", "failed", "canceled", "input_required"]
CallOutcome = Literal["ok", "failed"]
RecoveryReason = Literal["handover", "lost"]
"""Why a run was resumed: its server stopped and handed it over, or its process was lost."""

ProcessValues = Mapping[str, float]
"""The metrics of a process, by name."""

OTHER: Final = "other"
"""The label value of names that are not known in advance, for example an agent that a model made up."""

_OUTCOMES: Final[dict[TaskState, RunOutcome]] = {
    TaskState.TASK_STATE_COMPLETED: "completed",
    TaskState.TASK_STATE_FAILED: "failed",
    TaskState.TASK_STATE_CANCELED: "canceled",
    TaskState.TASK_STATE_INPUT_REQUIRED: "input_required",
    TaskState.TASK_STATE_AUTH_REQUIRED: "input_required",
}
FAILURE_CODES: Final = frozenset({*get_args(FailureCode), "expired", "internal_error", "interrupted"})
_RUN_ENDS: Final[tuple[Labels, ...]] = (
    *((outcome, "") for outcome in get_args(RunOutcome) if outcome != "failed"),
    *(("failed", code) for code in sorted({*FAILURE_CODES, OTHER})),
)
_RECOVERIES: Final[tuple[Labels, ...]] = tuple((reason,) for reason in get_args(RecoveryReason))
_CALL_ENDS: Final = "tool_notification_end"
_MAX_BEGUN: Final = 10_000


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a server at a scrape. `queued` messages wait for their turn; `streams` are open SSE connections."""

    running: int = 0
    queued: int = 0
    streams: int = 0
    degraded: bool = False
    audit: AuditState | None = None


@dataclass(frozen=True, slots=True)
class Scrape:
    """The numbers of a server. `processes` has a server with several workers, by the number of the worker."""

    counts: RunCounts
    state: ServerState
    processes: Mapping[int, ProcessValues] = field(default_factory=dict)


class RunMetrics(RunCounts):
    """`agents` are the names that may be label values: the server's own agent and those it delegates to."""

    def __init__(self, agents: Iterable[str]) -> None:
        super().__init__()
        self._agents = frozenset(agents)
        self._begun: dict[str, float] = {}
        """By task, when its run began, in seconds since the epoch."""
        # Zeros from the start: Prometheus does not see the increase of a series that begins with 1.
        self.runs.update(dict.fromkeys(_RUN_ENDS, 0))
        self.recoveries.update(dict.fromkeys(_RECOVERIES, 0))

    def observe_log(self, task_id: str, entries: Sequence[Entry]) -> None:
        """An observer of the event log."""
        self.events += len(entries)
        for entry in entries:
            event = entry.event
            if isinstance(event, TaskStatusUpdateEvent):
                self._note_status(task_id, event)
            elif event.artifact.name == _CALL_ENDS:
                self._note_call(event.artifact)

    def observe(self, store: Store, kind: StoreKind, operation: StoreOperation, seconds: float) -> None:
        """The `StoreTimer` of the server's stores."""
        self.store_operations[store, kind, operation].observe(seconds)

    def model_turn(self, agent: str, ok: bool) -> None:
        """Count a turn of an agent's model. The log has no event for it."""
        self.model_turns[self._label(agent), _call_outcome(ok)] += 1

    def recovered(self, reason: RecoveryReason) -> None:
        """Count a run that another process began and this one resumes."""
        self.recoveries[reason,] += 1

    def _note_status(self, task_id: str, event: TaskStatusUpdateEvent) -> None:
        # The time of the event, not of the append: a delegated run writes its events together.
        at = event.status.timestamp.seconds + event.status.timestamp.nanos / 1e9
        state = event.status.state
        if state == TaskState.TASK_STATE_WORKING:
            self._begin(task_id, at)
        elif (outcome := _OUTCOMES.get(state)) is not None:
            self.runs[outcome, _code(event) if outcome == "failed" else ""] += 1
            begun = self._begun.pop(task_id, None)
            if begun is not None:
                self.durations[outcome,].observe(max(0.0, at - begun))

    def _begin(self, task_id: str, at: float) -> None:
        # The end of a run that another process took over is not seen here.
        while len(self._begun) >= _MAX_BEGUN:
            del self._begun[next(iter(self._begun))]
        self._begun.setdefault(task_id, at)

    def _note_call(self, end: Artifact) -> None:
        agent = self._label(_text(end.metadata, "source_agent"))
        calls = self.delegations if kind_of(end.metadata) == "agent_finished" else self.tool_calls
        ok = end.metadata.fields.get("ok")
        calls[agent, _call_outcome(ok is not None and ok.bool_value)] += 1

    def _label(self, agent: str) -> str:
        return agent if agent in self._agents else OTHER


def _text(metadata: Struct, key: str) -> str:
    value = metadata.fields.get(key)  # indexing would add a missing key to an event that others read
    return "" if value is None else value.string_value


def _code(event: TaskStatusUpdateEvent) -> str:
    code = _text(event.metadata, "error_code")
    return code if code in FAILURE_CODES else OTHER


def _call_outcome(ok: bool) -> CallOutcome:
    return "ok" if ok else "failed"
