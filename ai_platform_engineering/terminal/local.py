"""A supervisor inside this process, behind a socket that only this user can open.

It is the app that `serve` runs, spoken to in the same protocol, so what one sees here is what any client sees. A Unix
socket in a private directory keeps other users of the machine out without a key, which would be handed on to agents.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import uvicorn

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor, connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.access_tokens import SupervisorAuth

_ADDRESS: Final = "http://localhost"
_SHUTDOWN_SECONDS: Final = 1
_GRANT: Final = ("a2a_oauth_grant_url", "a2a_oauth_client_id", "a2a_oauth_client_secret")


@asynccontextmanager
async def running_here(settings: Settings) -> AsyncIterator[Supervisor]:
    """The supervisor that `settings` describe; it and its agents stop when it is left."""
    from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import (  # noqa: PLC0415
        create_app,
    )

    # Access tokens are for those who come from elsewhere.
    app = create_app(settings.model_copy(update={"a2a_oauth_issuer": None}))
    auth = SupervisorAuth(settings.model_copy(update=dict.fromkeys(_GRANT)))
    with tempfile.TemporaryDirectory(prefix="platform-engineer-") as directory:
        path = str(Path(directory) / "supervisor.sock")
        config = uvicorn.Config(
            app,
            uds=path,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(_serve(server))
        try:
            while not server.started:
                if serving.done():
                    raise SupervisorError("The supervisor did not start; the log says why.")
                await asyncio.sleep(0.01)
            transport = httpx.AsyncHTTPTransport(uds=path)
            async with connected(_ADDRESS, auth, transport) as supervisor:
                yield supervisor
        finally:
            server.should_exit = True
            await serving


async def _serve(server: uvicorn.Server) -> None:
    try:
        await server.serve()
    except SystemExit:
        # This is how uvicorn says that the app did not start.
        return
