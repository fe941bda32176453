"""Help texts and sentences of the listeners, in mrkdwn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ai_platform_engineering.integrations.slack_bot.places import StopOutcome

NOT_HERE: Final = (
    "I am not enabled in this channel. The operator of this bot can enable me here; until then, write to me directly."
)
STOP_SENTENCES: Final[Mapping[StopOutcome, str]] = {
    "stopping": "Stopping it.",
    "already_over": "This is over already.",
    "not_stopped": "I could not stop it right now. Please try again in a moment.",
}

_MAX_CHARACTERS: Final = 3_000
_MAX_DESCRIPTION_LENGTH: Final = 200


def help_text(command: str) -> str:
    return (
        "I plan a request, ask the agents that can help, and show every step.\n"
        "• Mention me with a question, or write to me directly. In my threads you need not mention me again.\n"
        f"• `{command} agents` lists my agents, `{command} workflows` the workflows that you can start by name.\n"
        f"• `{command} skills` lists skills. Use one by its name, as in `{command} /incident-triage payments-api`, or "
        "mention me and write the same. In a direct message, write a space before the slash.\n"
        f"• `{command} cancel` stops your requests in this channel, `{command}` with a question asks it here."
    )


def listed(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names with descriptions, as many as fit into a message."""
    lines: list[str] = [title]
    remaining = _MAX_CHARACTERS - len(title)
    for number, (name, description) in enumerate(rows):
        line = f"• *{escaped(name)}*" + (f": {escaped(_shortened(description))}" if description.strip() else "")
        remaining -= len(line) + 1
        if remaining < 0:
            lines.append(f"… and {len(rows) - number} more")
            break
        lines.append(line)
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Escape text for mrkdwn: otherwise `<!channel>` would notify the whole channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shortened(description: str) -> str:
    words = " ".join(description.split())
    return words if len(words) <= _MAX_DESCRIPTION_LENGTH else words[: _MAX_DESCRIPTION_LENGTH - 1] + "…"
