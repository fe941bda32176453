"""`platform-engineer doctor`: checks agents, models, stores, knowledge base and skills.

It starts the MCP servers of in-process agents and makes the test call that each manifest declares, reads card, tools
and self-check of remote agents, and asks each model one short question.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.cli.doctor_report import AgentReport, Report, show, to_json
from ai_platform_engineering.cli.exit_codes import FAILED
from ai_platform_engineering.graphs.approval_policy import ApprovalPolicy
from ai_platform_engineering.installation import product_version
from ai_platform_engineering.integrations.slack_bot.store import check_up_bot_store
from ai_platform_engineering.knowledge_bases.rag.checkup import check_up, store_row
from ai_platform_engineering.llm import chat_model, is_offline, is_offline_model
from ai_platform_engineering.llm.providers import model_label
from ai_platform_engineering.manifest import ModelChoice
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.mcp.confinement import isolation_gap
from ai_platform_engineering.multi_agents.agent_checks import (
    CHECK_TIMEOUT,
    backend_problem,
    has_check,
    model_problem,
    offline_warning,
)
from ai_platform_engineering.multi_agents.agent_registry import AgentEntry, AgentRegistry
from ai_platform_engineering.multi_agents.connectivity import (
    Reachability,
    new_client,
    probe_all,
    remote_check,
    remote_tools,
)
from ai_platform_engineering.multi_agents.platform_engineer.feedback.store import check_up_feedback
from ai_platform_engineering.sandbox.store import check_up_sandbox
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.settings.approval_overrides import parse_overrides, unknown_tools
from ai_platform_engineering.skills_middleware.checkup import check_up_skill_store, check_up_skills
from ai_platform_engineering.storage.audit.stores import check_up_audit
from ai_platform_engineering.storage.checkpoints.stores import ConversationsCheckup, check_up_conversations
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.event_log.checkup import check_up_event_log
from ai_platform_engineering.storage.memories.stores import check_up_memories
from ai_platform_engineering.storage.usage.stores import check_up_usage
from ai_platform_engineering.utils.a2a_common.server.push_configs import check_up_receivers
from ai_platform_engineering.utils.access_tokens import AccessTokenError, OwnBearer
from ai_platform_engineering.utils.redact import redact

_NO_TOOLS: Final = "it has no tools"

StoreCheck = Callable[[Settings], Awaitable[StoreCheckup | None]]
"""Returns the row of a store, or None if the store is not used."""

STORE_CHECKS: Final[tuple[StoreCheck, ...]] = (
    check_up_event_log,
    check_up_skill_store,
    check_up_memories,
    check_up_feedback,
    check_up_receivers,
    check_up_audit,
    check_up_usage,
    check_up_bot_store,
)
"""The stores without a section of their own in the report. Each check has a timeout."""


def run_doctor(options: argparse.Namespace, settings: Settings) -> int:
    async def run_checks() -> int:
        report = await diagnose(settings, offline=options.offline)
        # Printed before the event loop closes, because closing waits for pending name lookups.
        if options.json:
            print(to_json(report), flush=True)
        else:
            show(report)
        return 0 if report.ok else FAILED

    return asyncio.run(run_checks())


async def diagnose(settings: Settings, *, offline: bool = False) -> Report:
    """Check every known agent. With `offline`, no backend, model or Git repository is called.

    Every check has a timeout, so the duration is bounded by the longest of them.
    """
    registry = AgentRegistry.load(settings)
    wanted = {entry.name: entry.manifest.skills for entry in registry.enabled() if entry.manifest}
    local, remote, knowledge, skills, (conversations, stores), model_failures = await asyncio.gather(
        _check_local(settings, registry, offline=offline),
        _check_remote(settings, registry.remote(), offline=offline),
        check_up(settings),
        check_up_skills(settings, offline=offline, wanted=wanted),
        _check_stores(settings, sandbox_on=registry.sandbox_on),
        _ask_models(settings, registry.local(), offline=offline),
    )
    checked_agents = {**local, **remote}
    model, problems = _model(settings)
    return Report(
        version=product_version(),
        model=model,
        offline=is_offline(settings),
        sandbox=registry.sandbox_on,
        data_dir=str(settings.data_dir),
        approval=settings.describe_approval(sandbox_on=registry.sandbox_on),
        problems=(
            *problems,
            *_offline(settings, registry),
            *_isolation(settings, registry),
            *registry.problems,
            *(f"{name}: {missing}" for name, missing in registry.half_configured.items() if name not in checked_agents),
            *_unknown_tools(settings, local.values()),
        ),
        agents=tuple(
            checked_agents.get(entry.name) or AgentReport(entry.name, entry.enabled, entry.where, entry.why)
            for entry in registry.entries
        ),
        knowledge=knowledge,
        skills=skills,
        conversations=conversations,
        stores=(*stores, *([store_row(settings, knowledge)] if knowledge else [])),
        model_failures=model_failures,
    )


async def _check_stores(
    settings: Settings, *, sandbox_on: bool
) -> tuple[ConversationsCheckup, tuple[StoreCheckup, ...]]:
    checks = [*STORE_CHECKS, check_up_sandbox] if sandbox_on else [*STORE_CHECKS]
    conversations, rows = await asyncio.gather(
        check_up_conversations(settings), asyncio.gather(*(check(settings) for check in checks))
    )
    return conversations, (*(row for row in rows if row is not None), conversations.row())


async def _check_local(settings: Settings, registry: AgentRegistry, *, offline: bool) -> dict[str, AgentReport]:
    entries = registry.local()
    servers = McpServers(settings)
    try:
        await servers.start({entry.name: entry.servers() for entry in entries}, deadline=settings.mcp_start_timeout)
        checked = [entry for entry in entries if not offline and has_check(entry.servers())]
        found = await asyncio.gather(*(backend_problem(servers, entry.name, entry.servers()) for entry in checked))
        failures = {entry.name: problem for entry, problem in zip(checked, found, strict=True)}
        return {
            entry.name: AgentReport(
                entry.name,
                entry.enabled,
                entry.where,
                entry.why,
                reachable=failures[entry.name] is None if entry.name in failures else None,
                tools=tuple(tool.name for tool in servers.tools(entry.name)),
                approval=_approval(settings, entry, servers),
                problem=servers.problem(entry.name),
                failure=failures.get(entry.name) or registry.half_configured.get(entry.name),
                starting=servers.starting(entry.name),
                warnings=servers.warnings(entry.name),
            )
            for entry in entries
        }
    finally:
        await servers.aclose()


async def _ask_models(settings: Settings, entries: Sequence[AgentEntry], *, offline: bool) -> tuple[str, ...]:
    """Problems of the models of the supervisor and of the in-process agents. Each model is asked once."""
    if offline:
        return ()
    users: list[tuple[str | None, ModelChoice | None]] = [(None, None)]
    users += [(entry.name, entry.manifest.model) for entry in entries if entry.manifest is not None]
    models: dict[str, BaseChatModel] = {}
    for agent, choice in users:
        # A model that cannot be created is reported as a problem of the settings.
        with suppress(SettingsError):
            models.setdefault(model_label(settings, agent, choice), chat_model(settings, agent, choice))
    asked = {label: model for label, model in models.items() if not is_offline_model(model)}
    found = await asyncio.gather(*(model_problem(model) for model in asked.values()))
    return tuple(f"{label}: {problem}" for label, problem in zip(asked, found, strict=True) if problem)


def _approval(settings: Settings, entry: AgentEntry, servers: McpServers) -> tuple[str, ...]:
    if entry.manifest is None:
        return ()
    policy = ApprovalPolicy.of(settings, entry.manifest, sandboxed=entry.sandboxed)
    return tuple(tool.name for tool in servers.tools(entry.name) if policy.may_ask(tool))


def _offline(settings: Settings, registry: AgentRegistry) -> tuple[str, ...]:
    warning = offline_warning(settings, registry.local())
    return () if warning is None else (warning,)


def _isolation(settings: Settings, registry: AgentRegistry) -> tuple[str, ...]:
    servers = (server for entry in registry.local() for server in entry.servers())
    gap = isolation_gap(settings) if any(server.transport == "stdio" for server in servers) else None
    return () if gap is None else (gap,)


def _unknown_tools(settings: Settings, agents: Iterable[AgentReport]) -> list[str]:
    """Misspelt tools in overrides, which would silently need no approval. Only agents with all tools are checked."""
    overrides = parse_overrides(settings.require_approval_overrides)
    complete = [agent for agent in agents if agent.tools and agent.problem is None]
    return [problem for agent in complete for problem in unknown_tools(overrides, agent.name, agent.tools)]


async def _check_remote(settings: Settings, entries: Sequence[AgentEntry], *, offline: bool) -> dict[str, AgentReport]:
    tokens: dict[str, str | None] = {}
    no_token = None
    try:
        bearer = OwnBearer(settings)
        tokens = {entry.name: await bearer.token(entry.name) for entry in entries}
    except AccessTokenError as error:
        no_token = str(error)
    async with new_client() as client:
        found = await probe_all(entries, client, deadline=settings.agent_connectivity_timeout, tokens=tokens)
        reached = [entry for entry in entries if found[entry.name].ok]
        listed = await asyncio.gather(
            *(
                remote_tools(entry, client, timeout=settings.agent_connect_timeout, auth_token=tokens.get(entry.name))
                for entry in reached
            )
        )
        asked = [] if offline else reached
        checked = await asyncio.gather(
            *(
                remote_check(entry, client, timeout=2 * CHECK_TIMEOUT, auth_token=tokens.get(entry.name))
                for entry in asked
            )
        )
    failures = {entry.name: failure for entry, failure in zip(asked, checked, strict=True)}
    tools = {
        entry.name: None if rows is None else tuple(str(row["name"]) for row in rows)
        for entry, rows in zip(reached, listed, strict=True)
    }
    return {
        entry.name: replace(_remote_report(entry, found[entry.name], tools, no_token), failure=failures.get(entry.name))
        for entry in entries
    }


def _remote_report(
    entry: AgentEntry, found: Reachability, tools: Mapping[str, tuple[str, ...] | None], no_token: str | None
) -> AgentReport:
    listed = tools.get(entry.name)
    return AgentReport(
        entry.name,
        entry.enabled,
        entry.where,
        entry.why,
        address=redact(entry.address or ""),
        reachable=found.ok,
        tools=found.skills if listed is None else listed,
        problem=found.reason or no_token or (_NO_TOOLS if listed == () else None),
    )


def _model(settings: Settings) -> tuple[str | None, tuple[str, ...]]:
    try:
        return model_label(settings), ()
    except SettingsError as error:
        return None, error.problems
