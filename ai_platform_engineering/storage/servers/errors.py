"""The error of a store on a server."""

from __future__ import annotations


class StoreError(Exception):
    """A store cannot be used now. The text is the reason, without credentials or addresses.

    `way_out` is a sentence that says what to do about it.
    """

    def __init__(self, reason: str, way_out: str = "") -> None:
        super().__init__(reason)
        self.way_out = way_out


def connection_check(setting: str) -> str:
    """What to do if a server cannot be reached. `setting` has its address."""
    return f"Check that the server is running, and the host, user and password in {setting}."
