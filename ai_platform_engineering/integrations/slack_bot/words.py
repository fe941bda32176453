"""The bot's own sentences. They never contain an address, a token or the text of an exception."""

from __future__ import annotations

import re
from typing import Final

from ai_platform_engineering.events import Canceled, Failed, FinalResult
from ai_platform_engineering.final_results import CUT_SENTENCES, is_silence
from ai_platform_engineering.integrations.slack_bot.markdown.mentions import disarm_mentions
from ai_platform_engineering.utils.redact import redact

WORKING: Final = "is working on it..."
STOPPABLE: Final = "_Working on it._"
CUT_OFF: Final = "_The text above was cut off; it is written again._"
NO_SUPERVISOR: Final = "I cannot reach the supervisor right now. Please try again in a moment."
MISCONFIGURED: Final = (
    "I am not set up to talk to the supervisor. Please tell the operator of this bot; the log says why."
)
NOT_ACCEPTED: Final = (
    "The supervisor did not accept this. A question in this thread may still wait for an answer; "
    "please ask in a new thread."
)
TOO_LATE: Final = "This was over before your answer arrived. Look above for the result before you ask again."
NOT_OPEN: Final = "This is not open any more: it was already answered, or it has expired."
ASKED: Final = "Another question in this thread needs an answer first."
ON_IT: Final = "I am already working on it again."
FORGOTTEN: Final = "I do not remember what was asked any more. Please ask again."
NOT_RATED: Final = "I could not save your rating right now. Please try again in a moment."
NOT_STORED: Final = (
    "I cannot save anything right now, so I have not accepted this. Please tell the operator of this bot; the log says "
    "why."
)
BROKEN: Final = "Something went wrong on my side. Ask here for the result of your request before you try again."
LOST_RUN: Final = (
    "I lost the connection to the supervisor, and it did not come back. Your request may still be running; "
    "ask here for its result."
)

_LOST_CODES: Final = frozenset({"stream_ended"})
_ADDRESS: Final = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]*://|(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?=[:/\s])"
    # A host name with a port; in a cluster, the host may be a single word.
    r"|[a-z][\w-]*(?:\.[\w-]+)+:\d{2,5}\b|[a-z][\w-]*:\d{4,5}\b)[^\s)>\]]*",
    re.I,
)
_DONE: Final = "_Done._"
_NO_ANSWER: Final = "_There is no answer._"
_LIMIT: Final = "_This is as far as I got: a limit on the work for one request was reached._"


def closing(ending: FinalResult | Failed | Canceled, stopped_by: str = "") -> str:
    """The closing line below a run's text; empty after a complete answer."""
    match ending:
        case FinalResult(text=text, limit=limit, budget_warning=warning):
            line = _DONE if is_silence(text) else _limit(limit) if limit else "" if text.strip() else _NO_ANSWER
            return "\n".join(filter(None, (line, f"_{plain(warning)}_" if warning else "")))
        case Canceled(message=message):
            by = f"_Stopped by <@{stopped_by}>._" if stopped_by else "_Stopped._"
            return f"{by} {plain(message)}".rstrip()
        case Failed(code=code) if code in _LOST_CODES:
            return f"⚠️ {LOST_RUN}"
        case Failed(message=message):
            return f"⚠️ {plain(message) or 'Something went wrong.'}"


def _limit(limit: str) -> str:
    cut = CUT_SENTENCES.get(limit)
    return f"⚠️ _This answer is not complete. {cut}_" if cut else _LIMIT


def plain(sentence: str) -> str:
    """`sentence` without addresses and secrets, and with mentions disarmed."""
    return disarm_mentions(_ADDRESS.sub("(address)", redact(sentence)).strip())
