"""The open forms of a conversation, asked one after the other; each answer is sent at once."""

from __future__ import annotations

from ai_platform_engineering.terminal.conversation import Conversation
from ai_platform_engineering.terminal.dialogue import Person, PutOff, answer_of
from ai_platform_engineering.terminal.output import Output
from ai_platform_engineering.terminal.prompt import forget_keys, silent_keys


def answer_forms(conversation: Conversation, output: Output, person: Person) -> PutOff | None:
    """Go on until no form is open, or the person leaves one open."""
    while forms := conversation.forms:
        forget_keys()
        answer = answer_of(forms[0], person, others=len(forms) - 1)
        if isinstance(answer, PutOff):
            return answer
        with silent_keys():
            conversation.answer(forms[0], answer, output)
    return None
