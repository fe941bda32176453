"""The tool with which a model asks a person for values."""

from __future__ import annotations

import json
from typing import Any, Final

from langchain_core.tools import BaseTool
from langgraph.types import interrupt

from ai_platform_engineering.forms.answers import Submitted, read_answer
from ai_platform_engineering.forms.questions import question_data
from ai_platform_engineering.forms.response import CAIPEAgentResponse
from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool

ASK_TOOL: Final = "request_user_input"

_DESCRIPTION = """\
Ask the person for values you need and cannot find out yourself. They see a form; you get their values as JSON.
Ask once for everything that is missing, and not for what the conversation or your tools can tell."""


def ask_tool(agent: str) -> BaseTool:
    async def request_user_input(**form: Any) -> str:
        answer = interrupt(question_data(CAIPEAgentResponse(**form).form(agent)))
        match read_answer(answer):
            case Submitted(values):
                return json.dumps(values, ensure_ascii=False)
            case other:
                return dismissed(getattr(other, "reason", ""))

    return CoroutineTool.from_function(
        coroutine=request_user_input, name=ASK_TOOL, description=_DESCRIPTION, args_schema=CAIPEAgentResponse
    )


def dismissed(reason: str) -> str:
    """The tool result for a form that was not filled in."""
    return f"The person canceled the form: {reason}" if reason else "The person canceled the form."
