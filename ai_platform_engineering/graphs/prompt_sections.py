"""Sections that a middleware adds to the system prompt for one call of the model."""

from __future__ import annotations

from langchain_core.messages import SystemMessage


def with_section(prompt: SystemMessage | None, section: str) -> SystemMessage:
    return SystemMessage(f"{prompt.text}\n\n{section}" if prompt is not None else section)
