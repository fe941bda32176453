"""The channels of the graph's state that workflows use.

`workflow` is the supervisor's own. `step` goes with a delegation: it tells the agent's graph that the delegation is a
step of a workflow: `{"tool": ..., "arguments": {...}}` for a tool to call, `{"instruction": true}` for words.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr

from ai_platform_engineering.multi_agents.platform_engineer.workflows.progress import WorkflowState

WORKFLOW_KEY: Final = "workflow"


class WorkflowChannels(AgentState[Any]):
    workflow: NotRequired[Annotated[WorkflowState | None, PrivateStateAttr]]
    step: NotRequired[dict[str, Any] | None]
