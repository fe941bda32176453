"""Socket Mode: requests to the bot go over one of its open connections."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.integrations.slack_bot.standin.deliveries import BotRequest, Reply
from tests.integrations.slack_bot.standin.state import State

CONNECTION_LIMIT = 10
Reason = Literal["warning", "refresh_requested", "link_disabled", "too_many_websockets"]


@dataclass(eq=False, slots=True)
class Connection:
    socket: WebSocket
    leaving: bool = False
    """It was asked to disconnect, and gets no more requests."""
    unanswered: dict[str, asyncio.Future[Reply]] = field(default_factory=dict)


@dataclass(slots=True)
class Sockets:
    state: State
    connections: deque[Connection] = field(default_factory=deque)
    opened: int = 0
    """How many connections there have ever been."""
    _asked: set[str] = field(default_factory=set)

    async def connect(self, socket: WebSocket) -> None:
        """A websocket of the bot, for as long as it lasts."""
        ticket = socket.query_params.get("ticket", "")
        # Each address that `apps.connections.open` gives is good for one connection.
        expires = self.state.socket_tickets.pop(ticket, 0.0)
        if self.state.now > expires:
            await socket.close(1008)
            return
        await socket.accept()
        connection = Connection(socket)
        if len(self.connections) >= CONNECTION_LIMIT:
            await self._send_disconnect(connection, "too_many_websockets")
            return
        self.opened += 1
        self.connections.append(connection)
        self.state.changed()
        try:
            await socket.send_json(self._hello())
            while True:
                self._acknowledged(connection, await socket.receive_json())
        except (WebSocketDisconnect, RuntimeError):
            # Starlette has no other word for a socket that this side has closed meanwhile.
            return
        finally:
            self.connections.remove(connection)
            for unanswered in connection.unanswered.values():
                if not unanswered.done():
                    unanswered.set_exception(ConnectionError("the connection was lost"))
            self.state.changed()

    async def send(self, request: BotRequest) -> Reply:
        connection = self._next()
        envelope_id = self.state.new_id("env-")
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        connection.unanswered[envelope_id] = reply
        self._asked.add(envelope_id)
        await connection.socket.send_json(_envelope(envelope_id, request))
        return await reply

    async def disconnect(self, reason: Reason = "refresh_requested") -> None:
        """Slack asks every connection to be replaced by a new one."""
        for connection in list(self.connections):
            connection.leaving = True
            await self._send_disconnect(connection, reason)

    async def drop(self) -> None:
        """Every connection is closed without a word."""
        for connection in list(self.connections):
            connection.leaving = True
            await connection.socket.close(1001)

    def _next(self) -> Connection:
        """Each connection in turn."""
        for _ in range(len(self.connections)):
            self.connections.rotate(-1)
            if not self.connections[-1].leaving:
                return self.connections[-1]
        raise ConnectionError("the bot has no connection")

    def _acknowledged(self, connection: Connection, answer: dict[str, Any]) -> None:
        envelope_id = answer.get("envelope_id", "")
        reply = connection.unanswered.pop(envelope_id, None)
        if envelope_id not in self._asked:
            self.state.violate("unknown_ack", "socket", str(envelope_id))
        elif reply is not None and not reply.done():
            reply.set_result(Reply(answer.get("payload") or None))

    def _hello(self) -> dict[str, Any]:
        return {
            "type": "hello",
            "num_connections": len(self.connections),
            "connection_info": {"app_id": self.state.directory.app.id},
            "debug_info": {"host": "standin", "build_number": 1, "approximate_connection_time": 18060},
        }

    async def _send_disconnect(self, connection: Connection, reason: Reason) -> None:
        await connection.socket.send_json({"type": "disconnect", "reason": reason, "debug_info": {"host": "standin"}})


def _envelope(envelope_id: str, request: BotRequest) -> dict[str, Any]:
    retry = {"retry_attempt": request.retry_num, "retry_reason": request.retry_reason}
    return {
        "type": request.kind,
        "envelope_id": envelope_id,
        "payload": request.payload,
        "accepts_response_payload": request.kind != "events_api",
        **(retry if request.kind == "events_api" else {}),
    }
