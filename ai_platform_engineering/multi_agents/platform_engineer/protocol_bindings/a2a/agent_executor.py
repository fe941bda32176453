"""The executor: a request to the supervisor as an A2A task, from submitted to its end."""

from __future__ import annotations

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.agent import (
    AIPlatformEngineerA2ABinding,
)
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.server.executor import RunExecutor
from ai_platform_engineering.utils.a2a_common.wire import StreamState

__all__ = ["AIPlatformEngineerA2AExecutor", "StreamState"]


class AIPlatformEngineerA2AExecutor(RunExecutor):
    """The supervisor's tasks; an agent's own server runs the same executor over its own graph."""

    def __init__(self, binding: AIPlatformEngineerA2ABinding, log: EventLog, settings: Settings) -> None:
        super().__init__(binding, log, settings)
