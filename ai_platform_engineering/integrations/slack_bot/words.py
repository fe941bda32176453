"""What the bot itself says, in plain words: never an address, a token or the text of an exception."""

from __future__ import annotations

import re
from typing import Final

from ai_platform_engineering.events import Canceled, Failed, FinalResult
from ai_platform_engineering.integrations.slack_bot.markdown.mentions import silent
from ai_platform_engineering.limits import CUT_SENTENCES
from ai_platform_engineering.utils.redact import redact
from ai_platform_engineering.utils.silence import is_silence

WORKING: Final = "is working on it..."
STOPPABLE: Final = "_Working on it._"
CUT_OFF: Final = "_The text above was cut off; it is written again._"
NO_SUPERVISOR: Final = "I cannot reach the supervisor right now. Please try again in a moment."
MISCONFIGURED: Final = "I am not set up to talk to the supervisor. Please tell whoever runs me; the log says why."
NOT_TAKEN: Final = (
    "The supervisor did not take this. Something that was asked in this thread may still wait for an answer; "
    "please ask in a new thread."
)
TOO_LATE: Final = "This was over before your answer came. Look above for what came of it before you ask again."
NOT_OPEN: Final = "This is not open any more: it was answered already, or nobody answered in time."
ASKED: Final = "Something in this thread waits for an answer first."
ON_IT: Final = "I am working on it again already."
FORGOTTEN: Final = "I do not remember what was asked any more. Please ask again."
NOT_RATED: Final = "I could not keep your rating right now. Please try again in a moment."
NOT_KEPT: Final = (
    "I cannot keep anything right now, so I have not taken this. Please tell whoever runs me; the log says why."
)
BROKEN: Final = "Something went wrong on my side. Ask here what came of your request before you try it again."
LOST_RUN: Final = (
    "I lost the connection to the supervisor, and it did not come back. Your request may still be worked on; "
    "ask here what came of it."
)

_LOST_CODES: Final = frozenset({"stream_ended"})
_ADDRESS: Final = re.compile(
    r"\b(?:[a-z][a-z0-9+.-]*://|(?:localhost|\d{1,3}(?:\.\d{1,3}){3})(?=[:/\s])"
    # A name with a port: in a cluster one word is enough.
    r"|[a-z][\w-]*(?:\.[\w-]+)+:\d{2,5}\b|[a-z][\w-]*:\d{4,5}\b)[^\s)>\]]*",
    re.I,
)
_DONE: Final = "_Done._"
_NO_ANSWER: Final = "_There is no answer._"
_LIMIT: Final = "_This is as far as I got: a limit on the work for one request was reached._"


def closing(ending: FinalResult | Failed | Canceled, stopped_by: str = "") -> str:
    """What is said below everything else when a run has ended; empty where the answer says it all."""
    match ending:
        case FinalResult(text=text, limit=limit):
            return _DONE if is_silence(text) else _limit(limit) if limit else "" if text.strip() else _NO_ANSWER
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
    """`sentence` without what only operators may see; it calls nobody."""
    return silent(_ADDRESS.sub("(address)", redact(sentence)).strip())
