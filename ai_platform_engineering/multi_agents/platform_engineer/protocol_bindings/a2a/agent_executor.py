"""The executor of the supervisor: runs each request as an A2A task."""

from __future__ import annotations

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.agent import (
    AIPlatformEngineerA2ABinding,
)
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.server.executor import RunExecutor
from ai_platform_engineering.utils.a2a_common.server.metrics import RunMetrics
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import UsageLedger
from ai_platform_engineering.utils.a2a_common.wire import StreamState

__all__ = ["AIPlatformEngineerA2AExecutor", "StreamState"]


class AIPlatformEngineerA2AExecutor(RunExecutor):
    """Executor of the supervisor's tasks. The server of a single agent uses `RunExecutor` directly."""

    def __init__(
        self,
        binding: AIPlatformEngineerA2ABinding,
        log: EventLog,
        settings: Settings,
        metrics: RunMetrics | None = None,
        audit: Audit = NO_AUDIT,
        usage: UsageLedger | None = None,
    ) -> None:
        super().__init__(binding, log, settings, metrics, audit, binding.mas.policy, usage)
