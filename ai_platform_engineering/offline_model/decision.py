"""One turn of the offline model: which role it plays, and what it says in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from langchain_core.messages import BaseMessage

from ai_platform_engineering.offline_model import agent, answers, supervisor, workflow_report
from ai_platform_engineering.offline_model.conversation import EPOCH, Conversation, read_conversation
from ai_platform_engineering.offline_model.findings import was_consulted
from ai_platform_engineering.offline_model.structured import ToolChoice, as_call, forced_tool
from ai_platform_engineering.offline_model.tools import (
    DELEGATION_TOOL,
    PLAN_TOOL,
    STEERING_TOOLS,
    WORKFLOW_TOOL,
    Reply,
    Tool,
)
from ai_platform_engineering.utils.silence import NOTHING_TO_SAY


def decide(
    messages: Sequence[BaseMessage], tools: tuple[Tool, ...], tool_choice: ToolChoice = None, now: datetime = EPOCH
) -> Reply:
    """The reply to a conversation. The same arguments give the same reply."""
    if tool_choice == "none":
        tools = ()
    forced = forced_tool(tool_choice, tools)
    if forced is None:
        return _free_reply(messages, tools, now)
    return as_call(_free_reply(messages, tuple(tool for tool in tools if tool != forced), now), forced)


def _free_reply(messages: Sequence[BaseMessage], tools: tuple[Tool, ...], now: datetime) -> Reply:
    conversation = read_conversation(messages, may_use_tools=bool(tools), now=now)
    if any(tool.name == DELEGATION_TOOL for tool in tools):
        return supervisor.act(conversation, tools)
    if any(tool.name not in STEERING_TOOLS for tool in tools):
        return agent.act(conversation, tools)
    return Reply(_without_tools(conversation))


def _without_tools(conversation: Conversation) -> str:
    made = conversation.current.uses
    if supervisor.is_silent(conversation):
        return NOTHING_TO_SAY
    if workflow_report.is_report(conversation.instruction):
        return answers.signed(workflow_report.report(conversation.instruction, made))
    if any(use.name in {DELEGATION_TOOL, PLAN_TOOL, WORKFLOW_TOOL} for use in made) or was_consulted(made):
        return answers.signed(supervisor.summary(conversation, ()))
    if uses := [use for use in made if use.name not in STEERING_TOOLS]:
        return f"{answers.from_uses(uses, ())}\n\n{answers.STOPPED_EARLY}"
    return answers.NOTHING_GATHERED if conversation.cut_short else answers.no_tools(conversation.instructions)
