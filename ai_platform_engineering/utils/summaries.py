"""The message that stands for the summarised part of a conversation, as every reader of messages recognises it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage

_KEY: Final = "conversation_summary"


def summary_message(content: str, details: Mapping[str, Any], message_id: str | None) -> HumanMessage:
    """`details` are stored with the message and not sent to models."""
    return HumanMessage(content, id=message_id, additional_kwargs={_KEY: dict(details)})


def summary_details(message: BaseMessage) -> Mapping[str, Any] | None:
    """The details of a summary; None for any other message."""
    details = message.additional_kwargs.get(_KEY)
    return details if isinstance(details, Mapping) else None
