"""Commands that run a server: `serve`, `agent NAME` and `rag serve`.

Each reports problems with settings, files and the port before it imports the large libraries.
"""

from __future__ import annotations

import argparse
import gc
import logging
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.connection_limits import ConnectionLimits
from ai_platform_engineering.utils.keys import Place, check_exposure
from ai_platform_engineering.utils.logs import configure_logging
from ai_platform_engineering.utils.serving import begin_start, listen, run
from ai_platform_engineering.utils.worker_processes import run_workers

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from ai_platform_engineering.utils.a2a_common.server.worker_metrics import WorkerMetrics

logger = logging.getLogger(__name__)

_LOCAL_STORES: Final = frozenset({"sqlite", "memory"})
"""Stores of conversations that one process uses alone."""


def serve(options: argparse.Namespace, settings: Settings) -> int:
    begin_start(settings)
    from ai_platform_engineering.mcp.confinement import child_user
    from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
    from ai_platform_engineering.storage.data_files import check_data_files

    workers: int = getattr(options, "workers", 1)
    if workers > 1:
        check_shared_stores(settings, workers)
    elif settings.event_log == "postgres" and settings.checkpoint_type in _LOCAL_STORES:
        logger.warning(
            "Tasks are shared through Postgres (EVENT_LOG), but conversations are not: run only this supervisor, or "
            "set LANGGRAPH_CHECKPOINT_TYPE to postgres, mongodb or redis"
        )
    registry = AgentRegistry.load(settings)
    child_user(settings)
    check_data_files(settings)
    if settings.checkpoint_type not in _LOCAL_STORES:
        from ai_platform_engineering.storage.checkpoints.stores import check_store

        check_store(settings)
    if settings.langgraph_store_type is not None:
        from ai_platform_engineering.storage.memories.stores import memory_store

        memory_store(settings)
    settings, listener = _bind(options, settings, "front")
    from ai_platform_engineering.llm.providers import model_label
    from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
    from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app

    approval = settings.describe_approval(sandbox_on=registry.sandbox_on)
    line = _ready_line("Platform Engineer", settings, model_label(settings), registry.sandbox_on, approval)

    def app(metrics: WorkerMetrics | None = None) -> Starlette:
        return create_app(settings, PlatformEngineerDeepAgent(settings, registry), metrics)

    if workers > 1:
        return _run_workers(workers, app, listener, line, settings)
    return _run_app(app(), listener, lambda: print(line, flush=True), settings)


def serve_agent(options: argparse.Namespace, settings: Settings) -> int:
    begin_start(settings)
    from ai_platform_engineering.mcp.confinement import child_user
    from ai_platform_engineering.multi_agents.agent_registry import known_manifests
    from ai_platform_engineering.multi_agents.placement import sandbox_is_on, standalone
    from ai_platform_engineering.storage.data_files import check_data_files

    manifests = known_manifests(settings)
    entry = standalone(options.name, manifests, settings, sandbox_is_on(settings, manifests))
    warn_about_unknown_settings(settings)
    child_user(settings)
    check_data_files(settings, entry.name)
    settings, listener = _bind(options, settings, "behind", entry.name)
    from ai_platform_engineering.llm.providers import model_label
    from ai_platform_engineering.multi_agents.agent_app import create_agent_app

    model = model_label(settings, entry.name, manifests[entry.name].model)
    approval = settings.approval_level(sandboxed=entry.sandboxed)
    line = _ready_line(f"Agent {entry.name}", settings, model, entry.sandboxed, approval)
    return _run_app(create_agent_app(settings, entry.name), listener, lambda: print(line, flush=True), settings)


def serve_knowledge_base(options: argparse.Namespace, settings: Settings) -> int:
    begin_start(settings)
    from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
    from ai_platform_engineering.utils.private_files import secure_data_dir

    WebPolicy.of(settings)
    warn_about_unknown_settings(settings)
    secure_data_dir(settings.data_dir)
    settings, listener = _bind(options, settings, "behind")
    from ai_platform_engineering.knowledge_bases.rag.app import MCP_PATH, create_rag_app

    # A2A_PUBLIC_URL is the URL of the supervisor or of an agent, not of this server.
    address = settings.model_copy(update={"a2a_public_url": None}).public_url
    line = f"Knowledge base is ready at {address}{MCP_PATH}"
    return _run_app(create_rag_app(settings), listener, lambda: print(line, flush=True), settings)


def check_shared_stores(settings: Settings, workers: int) -> None:
    """Raise unless all processes of the server can share its tasks and conversations."""
    if settings.event_log != "postgres":
        raise SettingsError(
            f"--workers {workers} needs EVENT_LOG=postgres, so that the processes share their tasks. EVENT_LOG is "
            f"{settings.event_log}."
        )
    if settings.checkpoint_type in _LOCAL_STORES:
        raise SettingsError(
            f"--workers {workers} needs conversations on a server, so that the processes share them: set "
            f"LANGGRAPH_CHECKPOINT_TYPE to postgres, mongodb or redis. It is {settings.checkpoint_type}."
        )


def _bind(
    options: argparse.Namespace, settings: Settings, place: Place, agent: str | None = None
) -> tuple[Settings, socket]:
    """Open the listening socket, and return it with settings that have its address."""
    host: str = getattr(options, "host", settings.a2a_host)
    listener = listen(host, getattr(options, "port", settings.a2a_port))
    try:
        check_exposure(settings, place, getattr(options, "published_on", listener.getsockname()[0]), agent)
    except BaseException:
        listener.close()
        raise
    listening = {
        "a2a_host": host,
        "a2a_port": listener.getsockname()[1],
        "allowed_hosts": ",".join([settings.allowed_hosts, *getattr(options, "allowed_hosts", [])]),
    }
    return settings.model_copy(update=listening), listener


def _run_app(app: Starlette, listener: socket, on_ready: Callable[[], None], settings: Settings) -> int:
    """Serve `app` until a signal stops it, and return the exit code."""
    on_stop = {"on_stop": app.state.stop_work} if hasattr(app.state, "stop_work") else {}
    limits = ConnectionLimits.of(settings)
    return run(app, listener, on_ready, limits, grace=settings.shutdown_grace, **on_stop)


def _run_workers(
    number: int, app: Callable[[WorkerMetrics], Starlette], listener: socket, line: str, settings: Settings
) -> int:
    """Serve the app in several processes. All modules are imported by now, and workers share their memory."""
    from ai_platform_engineering.utils.a2a_common.server.worker_metrics import WorkerMetrics, worker_directory

    gc.freeze()
    with worker_directory(number) as directory:

        def work(worker: int, on_ready: Callable[[], None]) -> int:
            configure_logging(settings, worker=worker)
            return _run_app(app(WorkerMetrics(directory, worker, number)), listener, on_ready, settings)

        return run_workers(number, work, listener, lambda: print(line, flush=True), grace=settings.shutdown_grace)


def _ready_line(name: str, settings: Settings, model: str, sandbox_on: bool, approval: str) -> str:
    sandbox = "on" if sandbox_on else "off"
    return f"{name} is ready at {settings.public_url} (model: {model}, sandbox: {sandbox}, approval: {approval})"


def warn_about_unknown_settings(settings: Settings) -> None:
    from ai_platform_engineering.multi_agents.agent_registry import known_manifests
    from ai_platform_engineering.unknown_settings import unknown_settings

    for warning in unknown_settings(settings, known_manifests(settings)):
        logger.warning("%s", warning)
