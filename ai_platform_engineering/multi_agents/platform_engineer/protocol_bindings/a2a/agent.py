"""The binding: runs the supervisor's graph and yields events."""

from __future__ import annotations

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.graphs.remote_agent import waiting_remotely
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.runs.outcomes import InterruptedRun
from ai_platform_engineering.runs.translation import ModelTurnObserver, ignore_model_turn
from ai_platform_engineering.skills_middleware.mas_registry import set_mas_instance
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext


class AIPlatformEngineerA2ABinding(BaseLangGraphAgent):
    """Each run uses the graph that is current when it starts, so a rebuilt graph serves the next request."""

    def __init__(self, mas: PlatformEngineerDeepAgent, on_model_turn: ModelTurnObserver = ignore_model_turn) -> None:
        super().__init__(SUPERVISOR, mas.graph_for, on_model_turn)
        self.mas = mas
        set_mas_instance(mas)

    async def abandon(self, run: InterruptedRun, context: RequestContext) -> None:
        await self.mas.cancel_remote(await waiting_remotely(self.mas.graph, context.context_id), context)
        await super().abandon(run, context)
