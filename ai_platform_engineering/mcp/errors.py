"""What can go wrong between a tool and its server.

`McpUnavailable` is for callers of tools. The others travel inside this package: each carries a reason that completes
the sentence "The <server> server ...", never the text of somebody else's exception, which may hold a secret.
"""

from __future__ import annotations

from langchain_core.tools import ToolException

from ai_platform_engineering.utils.errors import ReadableError


class McpUnavailable(ReadableError):  # noqa: N818 - the name says what a caller has to know
    """A tool could not be run, or its result was lost. The text is one a person can act on."""


class ToolFailed(ToolException):
    """A tool answered that it failed, or with an error of its backend. The text is its answer, for the model."""

    def __init__(self, answer: str, reason: str) -> None:
        super().__init__(answer)
        self.reason = reason
        """Why, as a person is shown it."""


class ServerTrouble(Exception):  # noqa: N818 - base of reasons, never shown as it is
    """The server did something, or did not; `reason` says what."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotSent(ServerTrouble):
    """The server has not seen the request, or has refused to look at it; sending it again is safe."""


class Refused(ServerTrouble):
    """The server would not run the request, and would not if it were sent again."""


class CredentialsRefused(Refused):
    """The server would have run it for somebody else. `answer` is how it said so."""

    def __init__(self, answer: str) -> None:
        super().__init__(f"refused the credentials ({answer}); check the headers in the manifest")
        self.answer = answer


class Lost(ServerTrouble):
    """The request was sent and no result came back; what it did is unknown."""


class NotStartable(ServerTrouble):
    """The server cannot be started until somebody changes the settings or the manifest."""
