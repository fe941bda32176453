"""The log of Slack's libraries. At DEBUG they write down what people say, so they are heard only when they complain."""

from __future__ import annotations

import logging
import re
from typing import Final

# Bolt looks at the environment by itself, and finds the token that its client has already.
_FOUND_TWICE: Final = "`token` will be unused"
_TICKET: Final = re.compile(r"ticket=[^&\s'\"]+")


class RedactingFilter(logging.Filter):
    """Takes out what lets others connect, and the stack, which says nothing that the message does not."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TICKET.sub("ticket=********", record.getMessage()), ()
        record.exc_info = None
        return _FOUND_TWICE not in record.msg


def library_log() -> logging.Logger:
    """For Bolt and slack_sdk, which take over its level and its filters."""
    log = logging.getLogger(f"{__package__}.slack")
    log.setLevel(max(logging.WARNING, logging.getLogger().level))
    if not log.filters:
        log.addFilter(RedactingFilter())
    return log
