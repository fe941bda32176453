"""The arguments of all commands.

Only this module and `argument_types` are imported for `--help`, so that it is quick: a command's own module is imported
when the command runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.cli import argument_types as types

if TYPE_CHECKING:
    from ai_platform_engineering.settings import Settings

    Command = Callable[[argparse.Namespace, Settings], int]

RAG_PORT: Final = 8010


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="platform-engineer",
        description="A supervisor that plans platform-engineering requests and delegates them to domain agents. "
        "Without a command it serves.",
        epilog="Settings are environment variables or lines of a file named .env; see docs/configuration.md.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, dest=argparse.SUPPRESS, help="show the version and exit")
    # The same two options before a command and after it; SUPPRESS keeps a command's default from hiding the first.
    _add_listen_options(parser)
    parser.set_defaults(run=_command("servers.serve"), quiet=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    _add_serve(commands)

    agent = commands.add_parser("agent", help="run one agent as a server of its own")
    agent.add_argument("name", help="name of the agent, for example argocd")
    _add_listen_options(agent)
    agent.set_defaults(run=_command("servers.serve_agent"))

    agents = commands.add_parser("agents", help="look at the agents").add_subparsers(metavar="ACTION", required=True)
    agents_list = agents.add_parser("list", help="list all known agents")
    agents_list.set_defaults(run=_command("agents.list_agents"), quiet=True)

    doctor = commands.add_parser(
        "doctor",
        help="check the model and every agent: enabled, where, why, reachable, tools",
        description="Checks every agent: starts its MCP servers, makes one test call of its backend, and asks the "
        "model one short question. Exits with 0 if the model and every enabled agent can be used, with 1 if one "
        "cannot, with 2 if the settings are wrong.",
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.add_argument(
        "--offline", action="store_true", help="make no test call of a backend and ask the model nothing"
    )
    doctor.set_defaults(run=_command("doctor.run_doctor"), quiet=True)

    _add_chat(commands)

    replay = commands.add_parser("replay", help="play a recorded run in the terminal")
    replay.add_argument("file", metavar="FILE", help="what chat --json printed; - for standard input")
    pace = replay.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=types.speed, default=1.0, help="how many times faster than it was recorded (1)")
    pace.add_argument("--instant", action="store_true", help="show it at once")
    replay.set_defaults(run=_command("replay.run_replay"), quiet=True)

    tasks = commands.add_parser("tasks", help="look at the tasks that are kept").add_subparsers(
        metavar="ACTION", required=True
    )
    tasks_list = tasks.add_parser("list", help="list tasks, the last change first")
    tasks_list.add_argument("--limit", type=types.count, default=20, help="how many (20)")
    tasks_list.add_argument("--state", help="only those in this state, for example completed or input-required")
    tasks_list.add_argument("--json", action="store_true", help="print one JSON object per task")
    tasks_list.set_defaults(run=_command("tasks.list_tasks"), quiet=True)
    tasks_show = tasks.add_parser("show", help="print what happened in a task")
    tasks_show.add_argument("--json", action="store_true", help="print the task as a JSON object")
    tasks_show.set_defaults(run=_command("tasks.show_task"), quiet=True)
    tasks_export = tasks.add_parser("export", help="write a task as a recording, which replay can play")
    tasks_export.add_argument("-o", "--output", metavar="FILE", type=Path, help="where to (standard output)")
    tasks_export.set_defaults(run=_command("tasks.export_task"), quiet=True)
    for action in (tasks_show, tasks_export):
        action.add_argument("id", metavar="ID", help="id of the task, or as much of its beginning as is unique")
    for action in (tasks_list, tasks_show, tasks_export):
        action.add_argument("--agent", metavar="NAME", help="tasks of this agent's own server, not the supervisor's")

    _add_feedback(commands)
    _add_workflows(commands)
    _add_skills(commands)
    _add_ingest(commands)
    _add_rag(commands)
    _add_slack(commands)

    sandbox = commands.add_parser("sandbox", help="the simulated company").add_subparsers(
        metavar="ACTION", required=True
    )
    reset = sandbox.add_parser("reset", help="bring the simulated company back to its first day")
    reset.set_defaults(run=_command("sandbox.reset"), quiet=True)
    path = sandbox.add_parser("path", help="print where the simulated company is kept")
    path.set_defaults(run=_command("sandbox.show_path"), quiet=True)
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="run the supervisor (the default)")
    _add_listen_options(serve)
    serve.add_argument(
        "--published-on",
        metavar="ADDRESS",
        type=types.address,
        default=argparse.SUPPRESS,
        help="in a container: the address of the machine that its port is published on; it decides whether callers "
        "need a key (the address that is listened on)",
    )
    serve.set_defaults(run=_command("servers.serve"))


def _add_chat(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    chat = commands.add_parser(
        "chat",
        help="talk to the supervisor in the terminal",
        description="Talks to the supervisor. With a question it exits with 0 if that was answered, with 1 if not, "
        "with 2 if something is set wrong, with 3 if it needs input, with 130 if it was interrupted. Where standard "
        "output is not a terminal, it gets the answer and nothing else; progress goes to standard error.",
    )
    chat.add_argument("question", nargs="?", help="ask this and exit; without it, questions are read until Ctrl-D")
    chat.add_argument(
        "--url", type=types.url, help="address of a running supervisor; without it one runs in this process"
    )
    chat.add_argument("--context", metavar="ID", help="go on with this conversation")
    chat.add_argument("--json", action="store_true", help="print one JSON object per event")
    chat.add_argument("--task", metavar="ID", help="go on with this task, which waits for input")
    answers = chat.add_argument_group("answers", "to a form of the task, or of the conversation, that waits for input")
    answers.add_argument(
        "--answer",
        metavar="NAME=VALUE",
        type=types.answer,
        action="append",
        default=[],
        help="fill in this field; with --approve, change this argument (repeatable)",
    )
    decision = answers.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_true", help="approve what is asked for, or take what is proposed")
    decision.add_argument("--reject", metavar="REASON", help="reject what is asked for, or dismiss the form")
    answers.add_argument("--form", metavar="ID", help="which form, where several are open")
    chat.set_defaults(run=_command("chat.run_chat"), quiet=True)


def _add_feedback(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    feedback = commands.add_parser("feedback", help="what people thought of answers").add_subparsers(
        metavar="ACTION", required=True
    )
    feedback_list = feedback.add_parser("list", help="list what they said, the newest first")
    feedback_list.add_argument("--limit", type=types.count, default=20, help="how many (20)")
    feedback_list.add_argument("--json", action="store_true", help="print one JSON object for each")
    feedback_list.set_defaults(run=_command("feedback.list_feedback"), quiet=True)


def _add_workflows(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    workflows = commands.add_parser("workflows", help="the self-service workflows").add_subparsers(
        metavar="ACTION", required=True
    )
    workflows_list = workflows.add_parser("list", help="list all workflows, and why one cannot be started")
    workflows_list.add_argument("--json", action="store_true", help="print one JSON object per workflow")
    workflows_list.set_defaults(run=_command("workflows.list_workflows"), quiet=True)
    workflows_show = workflows.add_parser("show", help="print the inputs and the steps of a workflow")
    workflows_show.add_argument("name", metavar="NAME", help="name or title of the workflow")
    workflows_show.add_argument("--json", action="store_true", help="print the workflow as a JSON object")
    workflows_show.set_defaults(run=_command("workflows.show_workflow"), quiet=True)
    workflows_run = workflows.add_parser(
        "run",
        help="start a workflow and fill in its form",
        description="Starts a workflow. Exits with 0 if all its steps were done, with 1 if not, with 2 if something is "
        "set wrong, with 3 if a form or an approval is left open, with 130 if it was interrupted.",
    )
    workflows_run.add_argument("name", metavar="NAME", help="name or title of the workflow")
    workflows_run.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=types.answer,
        action="append",
        default=[],
        dest="values",
        help="the value of an input (repeatable)",
    )
    workflows_run.add_argument(
        "--url", type=types.url, help="address of a running supervisor; without it one runs here"
    )
    workflows_run.add_argument("--json", action="store_true", help="print one JSON object per event")
    workflows_run.set_defaults(run=_command("workflows_run.start_workflow"), quiet=True)


def _add_skills(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    skills = commands.add_parser(
        "skills",
        help="the skills that the supervisor and its agents use",
        description="Works on the skills of this machine, or with --url on those of a running supervisor. Exits with 0 "
        "if that was done, with 1 if not, with 2 if something is set wrong.",
    ).add_subparsers(metavar="ACTION", required=True)
    listing = skills.add_parser("list", help="list the skills that can be used")
    listing.add_argument("--search", metavar="QUERY", default="", help="only those that match, the best first")
    listing.add_argument("--all", action="store_true", help="also those that another skill of their name overrides")
    listing.set_defaults(run=_command("skills.list_skills"))
    show = skills.add_parser("show", help="print a skill: its description, where it comes from, its instructions")
    show.add_argument("name", metavar="NAME", help="name of the skill")
    show.add_argument("--file", metavar="PATH", help="print this file of the skill and nothing else")
    show.set_defaults(run=_command("skills.show_skill"))
    add = skills.add_parser("add", help="add a skill, which the next request uses")
    add.add_argument("path", metavar="PATH", type=Path, help="a folder, a SKILL.md, a zip or a tar file")
    add.add_argument("--replace", action="store_true", help="replace the skill of this name and visibility")
    add.set_defaults(run=_command("skills.add_skill"))
    remove = skills.add_parser("remove", help="remove a skill that was added")
    remove.add_argument("name", metavar="NAME", help="name of the skill")
    remove.set_defaults(run=_command("skills.remove_skill"))
    for action in (add, remove):
        action.add_argument(
            "--visibility",
            choices=("global", "team", "personal"),
            help="who sees the skill (global, or team with --team)",
        )
        action.add_argument("--team", metavar="NAME", help="the team of a team skill")
    validate = skills.add_parser(
        "validate",
        help="check skills without storing them",
        description="Checks skills as the server would, and lists every problem. Exits with 1 if one cannot be used.",
    )
    validate.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="folders, SKILL.md files, archives")
    validate.set_defaults(run=_command("skills_validation.validate_skills"))
    refresh = skills.add_parser("refresh", help="load all sources again, Git repositories from where they are")
    refresh.set_defaults(run=_command("skills.refresh_skills"))
    for action in (listing, show, add, remove, refresh):
        action.add_argument(
            "--url", type=types.url, help="address of a running supervisor; without it, this machine's skills"
        )
    for action in (listing, show, add, remove, validate, refresh):
        action.add_argument("--json", action="store_true", help="print JSON")
        action.set_defaults(quiet=True)


def _add_rag(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rag = commands.add_parser("rag", help="the knowledge base").add_subparsers(metavar="ACTION", required=True)
    serve = rag.add_parser("serve", help="run the knowledge base as a server of its own (MCP and REST)")
    serve.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (A2A_HOST, or 127.0.0.1)")
    serve.add_argument("--port", type=types.port, default=RAG_PORT, help=f"port to listen on, 0 for any ({RAG_PORT})")
    _add_allowed_host(serve)
    serve.set_defaults(run=_command("servers.serve_knowledge_base"))
    search = rag.add_parser("search", help="search the knowledge base")
    search.add_argument("query", metavar="QUERY", help="a question, or the words a document would use")
    search.add_argument("--datasource", metavar="NAME", help="search this one alone")
    search.add_argument("--limit", type=types.count, default=5, help="how many results (5)")
    search.add_argument("--json", action="store_true", help="print the results as a JSON object")
    search.set_defaults(run=_command("rag.search"), quiet=True)
    rag_list = rag.add_parser("list", help="list the datasources")
    rag_list.add_argument("--json", action="store_true", help="print one JSON object per datasource")
    rag_list.set_defaults(run=_command("rag.list_datasources"), quiet=True)
    remove = rag.add_parser("remove", help="remove a datasource with all its documents")
    remove.add_argument("datasource", metavar="DATASOURCE", help="its name, as rag list gives it")
    remove.set_defaults(run=_command("rag.remove_datasource"), quiet=True)


def _add_ingest(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    ingest = commands.add_parser(
        "ingest",
        help="bring documents into the knowledge base",
        description="Brings Markdown, HTML, reStructuredText, plain text and PDF into the knowledge base: what is new "
        "or has changed; what is gone is removed. Exits with 0 if all could be read, with 1 if some could not, with 2 "
        "if something is set wrong, with 130 if it was interrupted: the same command goes on from there.",
    )
    ingest.add_argument("source", metavar="SOURCE", help="a folder, a file, the address of a page or of a sitemap")
    ingest.add_argument("--datasource", metavar="NAME", help="the name it gets (that of the folder, or of the host)")
    ingest.add_argument("--depth", metavar="N", type=types.depth, help="also the pages below, so many links away (0)")
    ingest.add_argument(
        "--max-pages", metavar="N", type=types.count, help="read at most so many pages (INGEST_MAX_PAGES)"
    )
    ingest.add_argument(
        "--allow-host",
        metavar="HOST",
        action="append",
        default=[],
        help="also pages of this host, where a sitemap lists them or FETCH_URL_ALLOWED_HOSTS is set (repeatable)",
    )
    ingest.add_argument(
        "--link-base",
        metavar="URL",
        help="where people read the files of a folder: URL/guides/deploy.md (file:// paths)",
    )
    ingest.add_argument("--json", action="store_true", help="print what was done as a JSON object")
    ingest.set_defaults(run=_command("ingest.ingest_source"), quiet=True)


def _add_slack(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    slack = commands.add_parser(
        "slack",
        help="run the Slack bot, or look at what people would see in Slack",
        description="Runs the Slack bot; docs/slack.md says how to set it up. With --preview or --manifest nothing is "
        "started, and neither Slack nor a token is needed.",
    )
    instead = slack.add_mutually_exclusive_group()
    instead.add_argument(
        "--preview", metavar="FILE", help="play a recording as people would see it; what chat --json printed, or -"
    )
    instead.add_argument("--manifest", action="store_true", help="print the manifest to make the Slack app from")
    preview = slack.add_argument_group("preview")
    preview.add_argument("--html", metavar="OUT", type=Path, help="write it as a page, with a slider for its moments")
    pace = preview.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=types.speed, help="how many times faster than it was recorded (1)")
    pace.add_argument("--instant", action="store_true", help="show how it ended")
    slack.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (SLACK_HOST, or 127.0.0.1)")
    slack.add_argument(
        "--port",
        type=types.port,
        default=argparse.SUPPRESS,
        help="port to listen on, 0 for any (SLACK_PORT, or 3000)",
    )
    slack.set_defaults(run=_command("slack.run_slack"))


@cache
def _command(name: str) -> Command:
    """The function `name`, as `module.function` of this package."""
    return partial(_run_command, name)


def _run_command(name: str, options: argparse.Namespace, settings: Settings) -> int:
    module, _, function = name.partition(".")
    command: Command = getattr(import_module(f"{__package__}.{module}"), function)
    return command(options, settings)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from ai_platform_engineering.version import product_version

        print(f"{parser.prog} {product_version()}")
        parser.exit()


def _add_listen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (A2A_HOST, or 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=types.port,
        default=argparse.SUPPRESS,
        help="port to listen on, 0 for any (A2A_PORT, or 8000)",
    )
    _add_allowed_host(parser)


def _add_allowed_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=argparse.SUPPRESS,
        dest="allowed_hosts",
        help="also answer to this host name, beside those of ALLOWED_HOSTS (repeatable)",
    )
