"""Answers: the Markdown text that the model replies with.

`filtering` narrows listed results to a request's criteria, `agent_answer` writes the answer of an agent from its tool
results, `supervisor_answer` combines the answers of several agents.
"""

from ai_platform_engineering.offline_model.answers.agent_answer import (
    NOTHING_GATHERED,
    STOPPED_EARLY,
    cancellation_text,
    could_not_help,
    from_uses,
    missing_detail,
    no_tools,
    nothing_fits,
    without_refusals,
)
from ai_platform_engineering.offline_model.answers.supervisor_answer import (
    AnswerPart,
    capabilities,
    combine_parts,
    greeting,
    part_text,
    refusal,
    with_signature,
)

__all__ = [
    "NOTHING_GATHERED",
    "STOPPED_EARLY",
    "AnswerPart",
    "cancellation_text",
    "capabilities",
    "combine_parts",
    "could_not_help",
    "from_uses",
    "greeting",
    "missing_detail",
    "no_tools",
    "nothing_fits",
    "part_text",
    "refusal",
    "with_signature",
    "without_refusals",
]
