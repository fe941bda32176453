"""The report of `doctor`: a table on a terminal, plain text, or JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ai_platform_engineering.knowledge_bases.rag.checkup import Checkup
from ai_platform_engineering.multi_agents.placement import Where
from ai_platform_engineering.skills_middleware.checkup import SkillsCheckup
from ai_platform_engineering.storage.checkpoints.stores import ConversationsCheckup
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.text.plain_text import aligned
from ai_platform_engineering.utils.characters import clean

if TYPE_CHECKING:
    from typing import TextIO


@dataclass(frozen=True)
class AgentReport:
    """The state of one agent.

    `reachable`: whether its server or, for an in-process agent, its backend answered; None if it was not checked.
    `approval`: the tools whose calls may need an approval; None for a remote agent, whose own process decides.
    `failure`: why the agent cannot work although it has tools. `warnings` do not make it unusable.
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
    failure: str | None = None
    starting: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """An agent with some of its tools is usable, even if others are missing."""
        return self.failure is None and (self.problem is None or bool(self.tools))


@dataclass(frozen=True)
class Report:
    """The result of all checks. `model` is None if it cannot be created; `problems` has the reason. `model_failures`
    has one message per model that does not answer. `knowledge` and `skills` are None if they are switched off."""

    version: str
    model: str | None
    offline: bool
    sandbox: bool
    data_dir: str
    approval: str
    problems: tuple[str, ...]
    agents: tuple[AgentReport, ...]
    knowledge: Checkup | None = None
    skills: SkillsCheckup | None = None
    conversations: ConversationsCheckup | None = None
    stores: tuple[StoreCheckup, ...] = ()
    model_failures: tuple[str, ...] = ()

    @property
    def starting(self) -> tuple[str, ...]:
        """Agents whose tools are still being downloaded."""
        return tuple(agent.name for agent in self.agents if agent.enabled and agent.starting and not agent.tools)

    @property
    def unusable(self) -> tuple[str, ...]:
        """Names of the enabled agents and of the stores that cannot be used."""
        agents = (agent.name for agent in self.agents if agent.enabled and not agent.usable)
        return (*agents, *(f"the {store.name}" for store in self.stores if store.problem))

    @property
    def ok(self) -> bool:
        """Whether the model answers and everything that is enabled can be used."""
        return self.model is not None and not self.model_failures and not self.unusable


def to_json(report: Report) -> str:
    return json.dumps({"ok": report.ok, **asdict(report)}, indent=2)


def show(report: Report, file: TextIO | None = None, width: int | None = None) -> None:
    """Print the report: a table on a terminal, plain lines elsewhere."""
    file = file or sys.stdout
    console = Console(file=file, width=width, highlight=False)
    if not console.is_terminal:
        tables = [*_plain_rows(report), "", *_plain_stores(report)]
        lines = [*_facts(report), "", *tables, *_remarks(report), _verdict(report)]
        file.write("".join(f"{_line(line)}\n" for line in lines))
        return
    for line in _facts(report):
        console.print(_shown(line))
    console.print(_table(report))
    if report.stores:
        console.print(_store_table(report))
    for remark in _remarks(report):
        console.print(_shown(remark), style="yellow")
    console.print(_shown(_verdict(report)), style="green" if report.ok else "red")


def _shown(text: str) -> Text:
    return Text(_line(text))


def _line(text: str) -> str:
    """`text` on one line: names and reasons come from agents, servers and files. Spaces stay as they are."""
    return " ".join(clean(text).splitlines())


def _facts(report: Report) -> list[str]:
    return [
        f"Version   {report.version}",
        f"Model     {report.model or 'none'}",
        f"Sandbox   {'on' if report.sandbox else 'off'} ({report.data_dir})",
        f"Approval  {report.approval}",
        f"Knowledge {report.knowledge or 'off'}",
        f"Skills    {report.skills or 'off'}",
        *([f"Conversations {report.conversations}"] if report.conversations else []),
    ]


def _verdict(report: Report) -> str:
    model = ("the model",) if report.model is None or report.model_failures else ()
    broken = [*model, *(name for name in report.unusable if name not in report.starting)]
    sentences = [f"Not usable: {', '.join(broken)}."] if broken else []
    if report.starting:
        sentences.append(
            f"Still starting: {', '.join(report.starting)}. Raise MCP_START_TIMEOUT to wait for a download."
        )
    if sentences:
        return " ".join(sentences)
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
        table.add_row(*map(_shown, _cells(agent)), style=style)
    return table


def _plain_rows(report: Report) -> list[str]:
    return list(aligned([_HEADINGS, *(_cells(agent) for agent in report.agents)]))


_STORE_HEADINGS = ("Store", "Kind", "Usable", "Where")


def _store_cells(store: StoreCheckup) -> tuple[str, str, str, str]:
    where = f"{store.place} ({about})" if (about := str(store)) else store.place
    return store.name, store.kind, {True: "yes", False: "no", None: "-"}[store.usable], where


def _store_table(report: Report) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in _STORE_HEADINGS[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(_STORE_HEADINGS[-1], overflow="fold")
    for store in report.stores:
        table.add_row(*map(_shown, _store_cells(store)), style="red" if store.problem else "")
    return table


def _plain_stores(report: Report) -> list[str]:
    if not report.stores:
        return []
    return [*aligned([_STORE_HEADINGS, *map(_store_cells, report.stores)]), ""]


def _remarks(report: Report) -> list[str]:
    """Problems and warnings, which are printed below the table."""
    of_agents = [
        f"{agent.name}{f' at {agent.address}' if agent.address else ''}: {remark}"
        for agent in report.agents
        if agent.enabled
        for remark in filter(None, (agent.problem, agent.failure, *agent.warnings))
    ]
    of_models = [f"Model {failure}" for failure in report.model_failures]
    of_knowledge = [report.knowledge.note] if report.knowledge else []
    of_skills = report.skills.problems if report.skills else ()
    # The catalog of skills reports a problem of its store, too.
    of_stores = [store.problem for store in report.stores if not any(str(store.problem) in line for line in of_skills)]
    return [*of_models, *of_agents, *filter(None, (*of_knowledge, *of_stores)), *of_skills, *report.problems]
