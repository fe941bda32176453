"""What stands below a form that was answered: who said what."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.arguments import masked_arguments
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import escaped_line
from ai_platform_engineering.text import form_words

_NOTE_LENGTH: Final = 1_000


def answered_note(form: Form, answer: Answer, person_mention: str) -> str:
    """Who said what, in Slack's Markdown; secrets are left out. `person_mention` is written as Slack wants it."""
    match answer:
        case Submitted():
            said = form_words.answer_text(form, answer).replace("\n", ", ")
            return f"Answered by {person_mention}: {escaped_line(said, _NOTE_LENGTH)}"
        case Approved(None, True):
            remembered = form_words.remembered(form) or "the same need not be approved again in this conversation"
            return f"Approved by {person_mention}, from now on: {escaped_line(remembered, _NOTE_LENGTH)}"
        case Approved(None):
            return f"Approved by {person_mention}"
        case Approved(arguments, remember):
            shown = Approved(masked_arguments(arguments or {}), remember)
            said = form_words.answer_text(form, shown).removeprefix("approve with ")
            return f"Approved by {person_mention} with {escaped_line(said, _NOTE_LENGTH)}"
        case Rejected(reason):
            return f"Rejected by {person_mention}{_because(reason)}"
        case Dismissed(reason):
            return f"Canceled by {person_mention}{_because(reason)}"


def _because(reason: str) -> str:
    return f": {escaped_line(reason, _NOTE_LENGTH)}" if reason.strip() else ""
