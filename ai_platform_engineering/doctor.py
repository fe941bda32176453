"""The doctor: looks at every agent the way the supervisor would use it, and says what it found.

Agents of this process get their MCP servers started and stopped again; remote ones are asked for card and tools.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ai_platform_engineering.knowledge_bases.rag.checkup import Checkup, check_up
from ai_platform_engineering.multi_agents.agent_registry import AgentEntry, AgentRegistry
from ai_platform_engineering.multi_agents.connectivity import Reachability, new_client, probe_all, remote_tools
from ai_platform_engineering.multi_agents.placement import Where
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.access_tokens import AccessTokenError, OwnBearer
from ai_platform_engineering.utils.approvals.overrides import parse_overrides, unknown_tools
from ai_platform_engineering.utils.approvals.policy import ApprovalPolicy
from ai_platform_engineering.utils.columns import aligned
from ai_platform_engineering.utils.llm import is_offline
from ai_platform_engineering.utils.mcp import McpServers
from ai_platform_engineering.utils.model_label import model_label
from ai_platform_engineering.utils.redact import redact
from ai_platform_engineering.version import product_version

if TYPE_CHECKING:
    from typing import TextIO

_NO_TOOLS = "it has no tools"


@dataclass(frozen=True)
class AgentReport:
    """One agent. `reachable` is `None` where there is nothing to reach: in this process, or switched off.

    `approval` names the tools whose calls wait for a person; `None` where that is for another process to say.
    """

    name: str
    enabled: bool
    where: Where
    why: str
    address: str | None = None
    reachable: bool | None = None
    tools: tuple[str, ...] = ()
    approval: tuple[str, ...] | None = None
    problem: str | None = None

    @property
    def usable(self) -> bool:
        """An agent with some of its tools can be used, whatever keeps the others away."""
        return self.problem is None or bool(self.tools)


@dataclass(frozen=True)
class Report:
    """All agents, and the facts that explain them. `model` is `None` where no model can be made: `problems` say why;
    `knowledge` is `None` where the knowledge base is switched off."""

    version: str
    model: str | None
    offline: bool
    sandbox: bool
    data_dir: str
    approval: str
    problems: tuple[str, ...]
    agents: tuple[AgentReport, ...]
    knowledge: Checkup | None = None

    @property
    def unusable(self) -> tuple[str, ...]:
        """What is there and cannot be used."""
        agents = (agent.name for agent in self.agents if agent.enabled and not agent.usable)
        return (*agents, *(("the knowledge base",) if self.knowledge and self.knowledge.problem else ()))

    @property
    def ok(self) -> bool:
        """Whether there is a model and every enabled agent, and the knowledge base, can be used."""
        return self.model is not None and not self.unusable


async def diagnose(settings: Settings) -> Report:
    """Look at every known agent; takes as long as the slowest deadline in the settings, whatever the agents do."""
    registry = AgentRegistry.load(settings)
    local, remote, knowledge = await asyncio.gather(
        _examine_local(settings, registry.local()), _examine_remote(settings, registry.remote()), check_up(settings)
    )
    examined = {**local, **remote}
    model, problems = _model(settings)
    return Report(
        version=product_version(),
        model=model,
        offline=is_offline(settings),
        sandbox=registry.sandbox_on,
        data_dir=str(settings.data_dir),
        approval=settings.require_approval,
        problems=(*problems, *registry.problems, *_unknown_tools(settings, local.values())),
        agents=tuple(
            examined.get(entry.name) or AgentReport(entry.name, entry.enabled, entry.where, entry.why)
            for entry in registry.entries
        ),
        knowledge=knowledge,
    )


def to_json(report: Report) -> str:
    return json.dumps({"ok": report.ok, **asdict(report)}, indent=2, ensure_ascii=False)


def show(report: Report, file: TextIO | None = None, width: int | None = None) -> None:
    """Print the report: a table on a terminal, plain lines elsewhere."""
    file = file or sys.stdout
    console = Console(file=file, width=width, highlight=False)
    if not console.is_terminal:
        lines = [*_facts(report), "", *_plain_rows(report), "", *_remarks(report), _verdict(report)]
        file.write("\n".join(lines) + "\n")
        return
    for line in _facts(report):
        console.print(escape(line))
    console.print(_table(report))
    for remark in _remarks(report):
        console.print(f"[yellow]{escape(remark)}[/]")
    console.print(f"[{'green' if report.ok else 'red'}]{escape(_verdict(report))}[/]")


async def _examine_local(settings: Settings, entries: Sequence[AgentEntry]) -> dict[str, AgentReport]:
    servers = McpServers(settings)
    try:
        await servers.start({entry.name: entry.servers() for entry in entries}, deadline=settings.mcp_start_timeout)
        return {
            entry.name: AgentReport(
                entry.name,
                entry.enabled,
                entry.where,
                entry.why,
                tools=tuple(tool.name for tool in servers.tools(entry.name)),
                approval=_approval(settings, entry, servers),
                problem=servers.problem(entry.name),
            )
            for entry in entries
        }
    finally:
        await servers.aclose()


def _approval(settings: Settings, entry: AgentEntry, servers: McpServers) -> tuple[str, ...]:
    if entry.manifest is None:
        return ()
    policy = ApprovalPolicy.of(settings, entry.manifest)
    return tuple(tool.name for tool in servers.tools(entry.name) if policy.needs(tool))


def _unknown_tools(settings: Settings, agents: Iterable[AgentReport]) -> list[str]:
    """A misspelt tool in an override would quietly go without a person. Tools that are not there are not known."""
    overrides = parse_overrides(settings.require_approval_overrides)
    complete = [agent for agent in agents if agent.tools and agent.problem is None]
    return [problem for agent in complete for problem in unknown_tools(overrides, agent.name, agent.tools)]


async def _examine_remote(settings: Settings, entries: Sequence[AgentEntry]) -> dict[str, AgentReport]:
    token, no_token = None, None
    try:
        token = await OwnBearer(settings).token()
    except AccessTokenError as error:
        no_token = str(error)
    async with new_client() as client:
        found = await probe_all(entries, client, deadline=settings.agent_connectivity_timeout, auth_token=token)
        reached = [entry for entry in entries if found[entry.name].ok]
        listed = await asyncio.gather(
            *(
                remote_tools(entry, client, timeout=settings.agent_connect_timeout, auth_token=token)
                for entry in reached
            )
        )
    tools = {
        entry.name: None if rows is None else tuple(str(row["name"]) for row in rows)
        for entry, rows in zip(reached, listed, strict=True)
    }
    return {entry.name: _remote_report(entry, found[entry.name], tools, no_token) for entry in entries}


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


def _facts(report: Report) -> list[str]:
    return [
        f"Version   {report.version}",
        f"Model     {report.model or 'none'}",
        f"Sandbox   {'on' if report.sandbox else 'off'} ({report.data_dir})",
        f"Approval  {report.approval}",
        f"Knowledge {report.knowledge or 'off'}",
    ]


def _verdict(report: Report) -> str:
    if report.model is None:
        return "Not usable: the model."
    if report.unusable:
        return f"Not usable: {', '.join(report.unusable)}."
    count = sum(agent.enabled for agent in report.agents)
    return f"All {count} enabled agents can be used."


_HEADINGS = ("Agent", "On", "Where", "Reachable", "Tools", "Why")


def _cells(agent: AgentReport) -> tuple[str, str, str, str, str, str]:
    return (
        agent.name,
        "yes" if agent.enabled else "no",
        agent.where if agent.enabled else "-",
        {True: "yes", False: "no", None: "-"}[agent.reachable],
        str(len(agent.tools)) if agent.enabled else "-",
        agent.why,
    )


def _table(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(_HEADINGS[0], max_width=16, overflow="fold")
    for heading in _HEADINGS[1:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(_HEADINGS[-1], overflow="fold")
    for agent in report.agents:
        style = "dim" if not agent.enabled else "" if agent.usable else "red"
        table.add_row(*(escape(cell) for cell in _cells(agent)), style=style)
    return table


def _plain_rows(report: Report) -> list[str]:
    return list(aligned([_HEADINGS, *(_cells(agent) for agent in report.agents)]))


def _remarks(report: Report) -> list[str]:
    """What does not fit into a row: what is wrong with an agent, and what is wrong altogether."""
    troubled = [agent for agent in report.agents if agent.enabled and agent.problem]
    of_agents = [
        f"{agent.name}{f' at {agent.address}' if agent.address else ''}: {agent.problem}" for agent in troubled
    ]
    of_knowledge = [report.knowledge.note, report.knowledge.problem] if report.knowledge else []
    return [*of_agents, *filter(None, of_knowledge), *report.problems]
