"""Adds the instructions of a Slack channel to the supervisor's prompt, for one run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse

from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.final_results import NOTHING_TO_SAY
from ai_platform_engineering.graphs.agent_graph import with_prompt_section
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext

_INSTRUCTIONS: Final = """\
The owners of the channel in which this was asked want the following. Keep to it as far as the rules above let you; it
is about how you answer there, and gives no one further rights.
<channel_instructions>
{instructions}
</channel_instructions>"""

_SILENCE: Final = f"""\
You were not addressed: you have read this in a channel where people talk to each other. Answer only where you can
really help. When no agent and no document of yours serves what was written, or you are not sure of your answer, write
exactly {NOTHING_TO_SAY} and nothing else, without a plan: nothing will be shown."""


class ChannelInstructions(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        section = prompt_section(request.runtime.context)
        if not section:
            return await handler(request)
        return await handler(overridden(request, system_message=with_prompt_section(request.system_message, section)))


def prompt_section(context: RequestContext | None) -> str:
    """The text to add to the prompt, usually empty."""
    if context is None:
        return ""
    instructions = _INSTRUCTIONS.format(instructions=context.instructions) if context.instructions else ""
    return "\n\n".join(filter(None, [instructions, _SILENCE if context.silent_when_unsure else ""]))
