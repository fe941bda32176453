"""A supervisor inside this process, behind a Unix socket that only this user can open.

It is the app of `serve` and it is called over A2A, so `chat` shows the same as any other client. The socket is in a
private directory, which keeps other users of the machine out without an API key; agents would inherit such a key.
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
from ai_platform_engineering.utils.serving import KEEP_ALIVE_SECONDS
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth

_ADDRESS: Final = "http://localhost"
_SHUTDOWN_SECONDS: Final = 1
_GRANT: Final = ("a2a_oauth_grant_url", "a2a_oauth_client_id", "a2a_oauth_client_secret")


@asynccontextmanager
async def local_supervisor(settings: Settings) -> AsyncIterator[Supervisor]:
    """Start a supervisor with `settings`; it stops with its agents on exit."""
    from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import (  # noqa: PLC0415
        create_app,
    )

    # Access tokens are for remote callers only.
    app = create_app(settings.model_copy(update={"a2a_oauth_issuer": None, "oidc_client_id": None}))
    auth = SupervisorAuth(settings.model_copy(update=dict.fromkeys(_GRANT)))
    with tempfile.TemporaryDirectory(prefix="platform-engineer-") as directory:
        path = str(Path(directory) / "supervisor.sock")
        config = uvicorn.Config(
            app,
            uds=path,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(_serve(server))
        try:
            while not server.started:
                if serving.done():
                    raise SupervisorError("The supervisor did not start; see the log for the reason.")
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
        # uvicorn raises this when the startup of the app fails.
        return
