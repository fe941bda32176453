"""An MCP server over HTTP whose tools are faults: `python -m benchmarks.faulty_server`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.connection_limits import ConnectionLimits
from ai_platform_engineering.utils.serving import listen, run

SLOW: Final = "slow"
UNAVAILABLE: Final = "unavailable"
UNANSWERED: Final = "unanswered"
_SECONDS: Final = 0.5
"""How long the slow tool takes."""


async def answer(request: Request) -> Response:
    message = await request.json()
    if "id" not in message:
        return Response(status_code=202)
    params = message.get("params") or {}
    match message["method"], params.get("name"):
        case "initialize", _:
            version, server = params["protocolVersion"], {"name": "faulty", "version": "1"}
            return _result(message, {"protocolVersion": version, "capabilities": {}, "serverInfo": server})
        case "tools/call", "unavailable":
            return Response(status_code=503)
        case "tools/call", "unanswered":
            return Response(": no event follows\n\n", media_type="text/event-stream")
    await asyncio.sleep(_SECONDS)
    return _result(message, {"content": []})


def _result(message: dict[str, Any], result: dict[str, Any]) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})


def main() -> int:
    listener = listen("127.0.0.1", 0)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    limits = ConnectionLimits.of(load_settings(env_file=None))
    app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
    return run(app, listener, lambda: print(address, flush=True), limits)


if __name__ == "__main__":
    sys.exit(main())
