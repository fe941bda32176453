"""What the bot says about itself, in Slack's own markup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NOT_HERE: Final = (
    "I am not switched on in this channel. Whoever runs this bot can switch me on here; until then, write to me "
    "directly."
)
_MAX_CHARACTERS: Final = 3_000
_MAX_WORDS: Final = 200


def help_text(command: str) -> str:
    """How to talk to the bot."""
    return (
        "I plan a request, ask the agents that can help, and show every step.\n"
        "• Mention me with a question, or write to me directly. In a thread that I am part of, just go on writing.\n"
        f"• `{command} agents` shows who works for me, `{command} workflows` what can be started by name.\n"
        f"• `{command} skills` lists skills. Use one by its name, as in `{command} /incident-triage payments-api`, or "
        "mention me and write the same. In a direct message, write a space before the slash.\n"
        f"• `{command} cancel` stops what you have asked for in this channel, `{command}` with a question asks it here."
    )


def listed(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names and what they are, as many as a message takes."""
    lines: list[str] = [title]
    room = _MAX_CHARACTERS - len(title)
    for number, (name, what) in enumerate(rows):
        line = f"• *{escaped(name)}*" + (f": {escaped(_first(what))}" if what.strip() else "")
        room -= len(line) + 1
        if room < 0:
            lines.append(f"… and {len(rows) - number} more")
            break
        lines.append(line)
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text that Slack shows as it is: without this, `<!channel>` would call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _first(what: str) -> str:
    words = " ".join(what.split())
    return words if len(words) <= _MAX_WORDS else words[: _MAX_WORDS - 1] + "…"
