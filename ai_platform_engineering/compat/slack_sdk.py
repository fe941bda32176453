"""slack_sdk: the address that a Socket Mode client connects to.

`SocketModeClient.wss_uri` is an undocumented attribute. The client reads it at every connect, and requests a new one
from Slack only when it is None. There is no public way to pass an address, or to drop one that has expired.
"""

from __future__ import annotations

from slack_sdk.socket_mode.aiohttp import SocketModeClient


def set_address(client: SocketModeClient, address: str | None) -> None:
    """Use `address` at the next connect. With None, the client requests a new one from Slack."""
    if not hasattr(client, "wss_uri"):
        raise AttributeError(
            "slack_sdk's SocketModeClient no longer has the attribute wss_uri, from which it takes the address to "
            "connect to: adapt ai_platform_engineering/compat/slack_sdk.py to this version of slack_sdk."
        )
    client.wss_uri = address
