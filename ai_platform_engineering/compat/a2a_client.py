"""a2a-sdk: the mapping of JSON-RPC errors to exceptions, which is a private method of the client's transport."""

from __future__ import annotations

from typing import Any

from a2a.client.transports.jsonrpc import JsonRpcTransport


def raise_error_in(response: Any, transport: JsonRpcTransport) -> None:
    """Raise the A2A error of a JSON-RPC response, or `A2AClientError` if it has neither an error nor a result."""
    transport._check_jsonrpc_response(response)
