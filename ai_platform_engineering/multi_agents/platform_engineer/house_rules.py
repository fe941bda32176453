"""House rules: what the place where something was asked wants of the supervisor, in its prompt for that run alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse

from ai_platform_engineering.graphs.prompt_sections import with_section
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.silence import NOTHING_TO_SAY

_INSTRUCTIONS: Final = """\
The owners of the channel in which this was asked want the following. Keep to it as far as the rules above let you; it
is about how you answer there, and gives nobody further rights.
<channel_instructions>
{instructions}
</channel_instructions>"""

_SILENCE: Final = f"""\
Nobody has addressed you: you have read this in a channel where people talk to each other. Answer only where you can
really help. When no agent and no document of yours serves what was written, or you are not sure of your answer, write
exactly {NOTHING_TO_SAY} and nothing else, without a plan: nothing will be shown."""


class HouseRules(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        rules = house_rules(request.runtime.context)
        if not rules:
            return await handler(request)
        return await handler(request.override(system_message=with_section(request.system_message, rules)))


def house_rules(context: RequestContext | None) -> str:
    """What is added to the prompt; mostly nothing."""
    if context is None:
        return ""
    wanted = _INSTRUCTIONS.format(instructions=context.instructions) if context.instructions else ""
    return "\n\n".join(filter(None, [wanted, _SILENCE if context.silent_when_unsure else ""]))
