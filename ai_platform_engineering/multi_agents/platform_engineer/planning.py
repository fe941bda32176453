"""The plan tool: how the supervisor's model writes its plan. The plan that people see is made in `runs/plan`."""

from __future__ import annotations

from typing import Literal

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.runs.plan import PLAN_TOOL


class PlanItem(BaseModel):
    model_config = ConfigDict(extra="ignore")

    content: str = Field(min_length=1, max_length=200, description="What is done in this step, a few words.")
    agent: str | None = Field(None, description="The agent that does it; left out for your own work.")
    status: Literal["pending", "in_progress", "completed", "failed"] = "pending"


class PlanArguments(BaseModel):
    title: str = Field("", max_length=120, description="The whole request in a few words.")
    steps: list[PlanItem] = Field(min_length=1, max_length=20, description="All steps, in order.")


def plan_tool() -> BaseTool:
    return StructuredTool.from_function(
        coroutine=_write_todos,
        name=PLAN_TOOL,
        description="Write the plan, or write it again as a whole when it changes. People see it while you work.",
        args_schema=PlanArguments,
    )


async def _write_todos(title: str, steps: list[PlanItem]) -> str:
    return f"The plan has {len(steps)} step{'s' if len(steps) != 1 else ''}. Go on with the work."
