"""Errors between a tool and its server.

Callers of tools see `McpUnavailable` and `ToolFailed`. The other errors stay inside of this package. Their reason
completes the sentence "The <server> server ...". It never contains the text of a foreign exception, which may hold a
secret.
"""

from __future__ import annotations

from langchain_core.tools import ToolException

from ai_platform_engineering.utils.errors import ReadableError


class McpUnavailable(ReadableError):  # noqa: N818 - the name tells a caller what to expect
    """A tool was not run, or its result was lost. The text tells a person what to do."""


class ToolFailed(ToolException):
    """A tool returned an error, or an error of its backend. The text is the tool's answer, for the model."""

    def __init__(self, answer: str, reason: str) -> None:
        super().__init__(answer)
        self.reason = reason
        """The error message for people."""


class ServerFailure(Exception):  # noqa: N818 - base class of the reasons below
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotSent(ServerFailure):
    """The server did not receive the request, or rejected it unread. It is safe to send it again."""


class RequestRefused(ServerFailure):
    """The server refused the request, and would refuse it again."""


class CredentialsRefused(RequestRefused):
    """The server refused the credentials. `answer` is its HTTP status, `of_user` says whether they were the user's."""

    def __init__(self, answer: str, *, of_user: bool = False) -> None:
        super().__init__(
            f"refused the credentials of this user ({answer})"
            if of_user
            else f"refused the credentials ({answer}); check the headers in the manifest"
        )
        self.answer = answer


class ResultLost(ServerFailure):
    """The request was sent, but no result arrived. It may or may not have taken effect."""


class NotStartable(ServerFailure):
    """The server cannot be started until the settings or the manifest change."""
