"""The HTTP routes of an A2A server, the supervisor's or an agent's: JSON-RPC, REST, agent card, health."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ai_platform_engineering.audit.access import AccessAudit
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.storage.event_log.log_database import log_address
from ai_platform_engineering.storage.push.receiver_file import ReceiverFile
from ai_platform_engineering.storage.push.receivers import ReceiverStore
from ai_platform_engineering.utils.a2a_common.protocol import ONCE_EXTENSION, RESUME_EXTENSION, SANDBOX_EXTENSION
from ai_platform_engineering.utils.a2a_common.server.admission import Admission
from ai_platform_engineering.utils.a2a_common.server.auth import CARD_PATHS
from ai_platform_engineering.utils.a2a_common.server.card import ChangingCard, card_routes
from ai_platform_engineering.utils.a2a_common.server.jsonrpc import JsonRpc
from ai_platform_engineering.utils.a2a_common.server.push import PushNotifications
from ai_platform_engineering.utils.a2a_common.server.push_configs import PushConfigs
from ai_platform_engineering.utils.a2a_common.server.push_sender import PushSender, push_policy
from ai_platform_engineering.utils.a2a_common.server.request_handler import LogRequestHandler
from ai_platform_engineering.utils.a2a_common.server.rest import rest_routes
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.usage_ledger import UsageLedger
from ai_platform_engineering.utils.a2a_common.server.work import Executor, Work
from ai_platform_engineering.utils.a2a_common.server.work_queue import WorkQueue
from ai_platform_engineering.utils.outbound.addresses import Resolve, resolve


@dataclass(frozen=True, slots=True)
class Degraded:
    """Why a server works only in part. If it does not `serve`, no requests should be sent to it."""

    reason: str
    serves: bool = True


def agent_card(
    *,
    name: str,
    description: str,
    url: str,
    version: str,
    skills: Iterable[AgentSkill] = (),
    schemes: Mapping[str, SecurityScheme] = MappingProxyType({}),
    keeps_tasks: bool = True,
    sandboxed: bool = False,
) -> AgentCard:
    """The card of a server at `url` with both protocol versions, JSON-RPC and REST, and resumable streams.

    Callers must use one of the `schemes`, if there are any. `keeps_tasks`: a restarted server has the tasks of before,
    so it recognizes their messages. `sandboxed`: its tools are those of the sandbox.
    """
    extensions = {
        RESUME_EXTENSION: "Subscribing with the header Last-Event-ID sends the task as it was at that event and every "
        "event after it, also when the task has ended."
    }
    if keeps_tasks:
        extensions[ONCE_EXTENSION] = (
            "A message with the messageId of an earlier message of its conversation starts nothing: its sender gets "
            "the task and the events of the earlier one."
        )
    if sandboxed:
        extensions[SANDBOX_EXTENSION] = "The tools of this agent are simulated."
    card = AgentCard(
        name=name,
        description=description,
        version=version,
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=protocol)
            for protocol in ("1.0", "0.3")
            for binding in ("JSONRPC", "HTTP+JSON")
        ],
        capabilities=AgentCapabilities(
            streaming=True,
            push_notifications=True,
            extensions=[AgentExtension(uri=uri, description=text) for uri, text in extensions.items()],
        ),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
        skills=skills,
    )
    for scheme_name, scheme in schemes.items():
        card.security_schemes[scheme_name].CopyFrom(scheme)
        card.security_requirements.append(SecurityRequirement(schemes={scheme_name: StringList()}))
    return card


def request_handler(  # noqa: PLR0913 - the parts of a handler
    executor: Executor,
    log: EventLog,
    card: AgentCard,
    settings: Settings,
    *,
    agent: str = SUPERVISOR,
    receivers: ReceiverStore | None = None,
    resolve: Resolve = resolve,
    audit: AccessAudit | None = None,
    usage: UsageLedger | None = None,
) -> LogRequestHandler:
    """A handler with push notifications, by default with their receivers in memory. `resolve` finds the addresses of
    their hosts. Call its `aclose` when the server stops."""
    configs = PushConfigs(receivers or ReceiverFile(None), log)
    return LogRequestHandler(
        _work(executor, log, settings, agent),
        log,
        card,
        agent=agent,
        admission=Admission(settings, agent),
        push_configs=configs,
        pushes=PushNotifications(configs, log, PushSender(push_policy(settings), resolve)),
        audit=audit,
        usage=usage,
    )


def _work(executor: Executor, log: EventLog, settings: Settings, agent: str) -> Work:
    endings = TaskEndings(log, agent)
    if settings.event_log != "postgres":
        return WorkQueue(executor, log, endings)
    from ai_platform_engineering.utils.a2a_common.server.job_queue import JobQueue  # noqa: PLC0415 - needs an extra

    return JobQueue(
        log_address(settings),
        executor,
        log,
        endings,
        server=agent,
        concurrency=settings.max_concurrent_runs,
    )


def a2a_routes(handler: LogRequestHandler, card: AgentCard | ChangingCard, settings: Settings) -> list[BaseRoute]:
    """JSON-RPC at "/", REST beside it, and the agent card."""
    return [
        Route("/", JsonRpc(handler, settings.max_request_bytes).handle, methods=["POST"]),
        *rest_routes(handler, settings.max_request_bytes),
        *card_routes(card, *CARD_PATHS),
    ]


def health_routes(
    ready: Callable[[], bool | Awaitable[bool]],
    tools: Callable[[Principal], Sequence[Any] | Awaitable[Sequence[Any]]],
    degraded: Callable[[], Degraded | None] = lambda: None,
) -> list[BaseRoute]:
    """`/healthz`: the process is alive. `/readyz`: it accepts requests, perhaps degraded. `/tools`: its tools."""

    async def healthz(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(request: Request) -> Response:
        is_ready = ready()
        if inspect.isawaitable(is_ready):
            is_ready = await is_ready
        if not is_ready:
            return JSONResponse({"status": "starting"}, status_code=503)
        if (problem := degraded()) is not None:
            body = {"status": "degraded", "reason": problem.reason}
            return JSONResponse(body, status_code=200 if problem.serves else 503)
        return JSONResponse({"status": "ready"})

    async def list_tools(request: Request) -> Response:
        rows = tools(caller_in(request.scope.get("state")))
        if inspect.isawaitable(rows):
            rows = await rows
        return JSONResponse({"tools": list(rows)})

    return [
        Route("/healthz", healthz, methods=["GET"]),
        Route("/readyz", readyz, methods=["GET"]),
        Route("/tools", list_tools, methods=["GET"]),
    ]
