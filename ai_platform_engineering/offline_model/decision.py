"""One turn of the offline model: choose the role (supervisor, agent, no tools) by the bound tools, and reply."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from langchain_core.messages import BaseMessage

from ai_platform_engineering.final_results import NOTHING_TO_SAY
from ai_platform_engineering.offline_model import agent, answers, supervisor
from ai_platform_engineering.offline_model.knowledge.search_results import was_consulted
from ai_platform_engineering.offline_model.messages.conversation import EPOCH, ParsedConversation, parse_conversation
from ai_platform_engineering.offline_model.messages.tools import (
    CONTROL_TOOLS,
    DELEGATION_TOOL,
    PLAN_TOOL,
    WORKFLOW_TOOL,
    BoundTool,
    ModelReply,
)
from ai_platform_engineering.offline_model.tool_choice import ToolChoice, as_call, forced_tool
from ai_platform_engineering.offline_model.workflows import workflow_report


def decide(
    messages: Sequence[BaseMessage], tools: tuple[BoundTool, ...], tool_choice: ToolChoice = None, now: datetime = EPOCH
) -> ModelReply:
    """The reply to a conversation. Pure: the same arguments give the same reply."""
    if tool_choice == "none":
        tools = ()
    forced = forced_tool(tool_choice, tools)
    if forced is None:
        return _free_reply(messages, tools, now)
    return as_call(_free_reply(messages, tuple(tool for tool in tools if tool != forced), now), forced)


def _free_reply(messages: Sequence[BaseMessage], tools: tuple[BoundTool, ...], now: datetime) -> ModelReply:
    conversation = parse_conversation(messages, may_use_tools=bool(tools), now=now)
    if any(tool.name == DELEGATION_TOOL for tool in tools):
        return supervisor.act(conversation, tools)
    if any(tool.name not in CONTROL_TOOLS for tool in tools):
        return agent.act(conversation, tools)
    return ModelReply(_without_tools(conversation))


def _without_tools(conversation: ParsedConversation) -> str:
    all_uses = conversation.current.uses
    if supervisor.is_silent(conversation):
        return NOTHING_TO_SAY
    if workflow_report.is_report(conversation.instruction):
        return answers.with_signature(workflow_report.report(conversation.instruction, all_uses))
    if any(use.name in {DELEGATION_TOOL, PLAN_TOOL, WORKFLOW_TOOL} for use in all_uses) or was_consulted(all_uses):
        return answers.with_signature(supervisor.summary(conversation, ()))
    if uses := [use for use in all_uses if use.name not in CONTROL_TOOLS]:
        return f"{answers.from_uses(uses, ())}\n\n{answers.STOPPED_EARLY}"
    return answers.NOTHING_GATHERED if conversation.must_answer_now else answers.no_tools(conversation.instructions)
