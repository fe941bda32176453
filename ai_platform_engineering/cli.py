"""The command line, `platform-engineer`: parses, loads the settings and hands over.

Everything else is imported where it is used, so that `--help` is there at once.
"""

from __future__ import annotations

import argparse
import ipaddress
import math
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from socket import socket

    from starlette.applications import Starlette

    from ai_platform_engineering.settings import Settings
    from ai_platform_engineering.skills_command import AskedAccess
    from ai_platform_engineering.utils.keys import Place

EXIT_UNUSABLE: Final = 1
EXIT_MISCONFIGURED: Final = 2
EXIT_INTERRUPTED: Final = 130
RAG_PORT: Final = 8010

# Read by libraries while they are imported: no tracing without a collector and, where a manifest names a server of
# FastMCP, one log instead of two and no checks of its own types in each of its functions.
_LIBRARY_DEFAULTS: Final = {
    "OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "false",
    "FASTMCP_LOG_ENABLED": "false",
    "PY_KEY_VALUE_DISABLE_BEARTYPE": "true",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code of the process."""
    for variable, value in _LIBRARY_DEFAULTS.items():
        os.environ.setdefault(variable, value)
    # httpx has a command line of its own, and loads what that needs where it can: here, nobody uses it.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # how a module is said not to be there
    options = build_parser().parse_args(argv)
    command: Callable[[argparse.Namespace, Settings], int] = options.run

    from ai_platform_engineering.settings import SettingsError, load_settings

    try:
        settings = load_settings()
    except SettingsError as error:
        return _refuse(error)
    from ai_platform_engineering.agents.manifest import ManifestError
    from ai_platform_engineering.multi_agents.platform_engineer.workflows.errors import WorkflowError
    from ai_platform_engineering.serving import ListenError
    from ai_platform_engineering.utils.logs import configure_logging

    configure_logging(settings, quiet=options.quiet)
    try:
        return command(options, settings)
    except (SettingsError, ManifestError, WorkflowError, ListenError) as error:
        return _refuse(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


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
    parser.set_defaults(run=_serve, quiet=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    _add_serve(commands)

    agent = commands.add_parser("agent", help="run one agent as a server of its own")
    agent.add_argument("name", help="name of the agent, for example argocd")
    _add_listen_options(agent)
    agent.set_defaults(run=_agent)

    agents = commands.add_parser("agents", help="look at the agents").add_subparsers(metavar="ACTION", required=True)
    agents_list = agents.add_parser("list", help="list all known agents")
    agents_list.set_defaults(run=_agents_list, quiet=True)

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
    doctor.set_defaults(run=_doctor, quiet=True)

    _add_chat(commands)

    replay = commands.add_parser("replay", help="play a recorded run in the terminal")
    replay.add_argument("file", metavar="FILE", help="what chat --json printed; - for standard input")
    pace = replay.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=_speed, default=1.0, help="how many times faster than it was recorded (1)")
    pace.add_argument("--instant", action="store_true", help="show it at once")
    replay.set_defaults(run=_replay, quiet=True)

    tasks = commands.add_parser("tasks", help="look at the tasks that are kept").add_subparsers(
        metavar="ACTION", required=True
    )
    tasks_list = tasks.add_parser("list", help="list tasks, the last change first")
    tasks_list.add_argument("--limit", type=_count, default=20, help="how many (20)")
    tasks_list.add_argument("--state", help="only those in this state, for example completed or input-required")
    tasks_list.add_argument("--json", action="store_true", help="print one JSON object per task")
    tasks_list.set_defaults(run=_tasks_list, quiet=True)
    tasks_show = tasks.add_parser("show", help="print what happened in a task")
    tasks_show.add_argument("--json", action="store_true", help="print the task as a JSON object")
    tasks_show.set_defaults(run=_tasks_show, quiet=True)
    tasks_export = tasks.add_parser("export", help="write a task as a recording, which replay can play")
    tasks_export.add_argument("-o", "--output", metavar="FILE", type=Path, help="where to (standard output)")
    tasks_export.set_defaults(run=_tasks_export, quiet=True)
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
    reset.set_defaults(run=_sandbox_reset, quiet=True)
    path = sandbox.add_parser("path", help="print where the simulated company is kept")
    path.set_defaults(run=_sandbox_path, quiet=True)
    return parser


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="run the supervisor (the default)")
    _add_listen_options(serve)
    serve.add_argument(
        "--published-on",
        metavar="ADDRESS",
        type=_address,
        default=argparse.SUPPRESS,
        help="in a container: the address of the machine that its port is published on; it decides whether callers "
        "need a key (the address that is listened on)",
    )
    serve.set_defaults(run=_serve)


def _add_chat(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    chat = commands.add_parser(
        "chat",
        help="talk to the supervisor in the terminal",
        description="Talks to the supervisor. With a question it exits with 0 if that was answered, with 1 if not, "
        "with 2 if something is set wrong, with 3 if it needs input, with 130 if it was interrupted. Where standard "
        "output is not a terminal, it gets the answer and nothing else; progress goes to standard error.",
    )
    chat.add_argument("question", nargs="?", help="ask this and exit; without it, questions are read until Ctrl-D")
    chat.add_argument("--url", type=_url, help="address of a running supervisor; without it one runs in this process")
    chat.add_argument("--context", metavar="ID", help="go on with this conversation")
    chat.add_argument("--json", action="store_true", help="print one JSON object per event")
    chat.add_argument("--task", metavar="ID", help="go on with this task, which waits for input")
    answers = chat.add_argument_group("answers", "to a form of the task, or of the conversation, that waits for input")
    answers.add_argument(
        "--answer",
        metavar="NAME=VALUE",
        type=_answer,
        action="append",
        default=[],
        help="fill in this field; with --approve, change this argument (repeatable)",
    )
    decision = answers.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_true", help="approve what is asked for, or take what is proposed")
    decision.add_argument("--reject", metavar="REASON", help="reject what is asked for, or dismiss the form")
    answers.add_argument("--form", metavar="ID", help="which form, where several are open")
    chat.set_defaults(run=_chat, quiet=True)


def _add_feedback(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    feedback = commands.add_parser("feedback", help="what people thought of answers").add_subparsers(
        metavar="ACTION", required=True
    )
    feedback_list = feedback.add_parser("list", help="list what they said, the newest first")
    feedback_list.add_argument("--limit", type=_count, default=20, help="how many (20)")
    feedback_list.add_argument("--json", action="store_true", help="print one JSON object for each")
    feedback_list.set_defaults(run=_feedback_list, quiet=True)


def _add_workflows(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    workflows = commands.add_parser("workflows", help="the self-service workflows").add_subparsers(
        metavar="ACTION", required=True
    )
    workflows_list = workflows.add_parser("list", help="list all workflows, and why one cannot be started")
    workflows_list.add_argument("--json", action="store_true", help="print one JSON object per workflow")
    workflows_list.set_defaults(run=_workflows_list, quiet=True)
    workflows_show = workflows.add_parser("show", help="print the inputs and the steps of a workflow")
    workflows_show.add_argument("name", metavar="NAME", help="name or title of the workflow")
    workflows_show.add_argument("--json", action="store_true", help="print the workflow as a JSON object")
    workflows_show.set_defaults(run=_workflows_show, quiet=True)
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
        type=_answer,
        action="append",
        default=[],
        dest="values",
        help="the value of an input (repeatable)",
    )
    workflows_run.add_argument("--url", type=_url, help="address of a running supervisor; without it one runs here")
    workflows_run.add_argument("--json", action="store_true", help="print one JSON object per event")
    workflows_run.set_defaults(run=_workflows_run, quiet=True)


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
    listing.set_defaults(run=_skills_list)
    show = skills.add_parser("show", help="print a skill: its description, where it comes from, its instructions")
    show.add_argument("name", metavar="NAME", help="name of the skill")
    show.add_argument("--file", metavar="PATH", help="print this file of the skill and nothing else")
    show.set_defaults(run=_skills_show)
    add = skills.add_parser("add", help="add a skill, which the next request uses")
    add.add_argument("path", metavar="PATH", type=Path, help="a folder, a SKILL.md, a zip or a tar file")
    add.add_argument("--replace", action="store_true", help="replace the skill of this name and visibility")
    add.set_defaults(run=_skills_add)
    remove = skills.add_parser("remove", help="remove a skill that was added")
    remove.add_argument("name", metavar="NAME", help="name of the skill")
    remove.set_defaults(run=_skills_remove)
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
    validate.set_defaults(run=_skills_validate)
    refresh = skills.add_parser("refresh", help="load all sources again, Git repositories from where they are")
    refresh.set_defaults(run=_skills_refresh)
    for action in (listing, show, add, remove, refresh):
        action.add_argument(
            "--url", type=_url, help="address of a running supervisor; without it, this machine's skills"
        )
    for action in (listing, show, add, remove, validate, refresh):
        action.add_argument("--json", action="store_true", help="print JSON")
        action.set_defaults(quiet=True)


def _add_rag(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rag = commands.add_parser("rag", help="the knowledge base").add_subparsers(metavar="ACTION", required=True)
    serve = rag.add_parser("serve", help="run the knowledge base as a server of its own (MCP and REST)")
    serve.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (A2A_HOST, or 127.0.0.1)")
    serve.add_argument("--port", type=_port, default=RAG_PORT, help=f"port to listen on, 0 for any ({RAG_PORT})")
    _add_allowed_host(serve)
    serve.set_defaults(run=_rag_serve)
    search = rag.add_parser("search", help="search the knowledge base")
    search.add_argument("query", metavar="QUERY", help="a question, or the words a document would use")
    search.add_argument("--datasource", metavar="NAME", help="search this one alone")
    search.add_argument("--limit", type=_count, default=5, help="how many results (5)")
    search.add_argument("--json", action="store_true", help="print the results as a JSON object")
    search.set_defaults(run=_rag_search, quiet=True)
    rag_list = rag.add_parser("list", help="list the datasources")
    rag_list.add_argument("--json", action="store_true", help="print one JSON object per datasource")
    rag_list.set_defaults(run=_rag_list, quiet=True)
    remove = rag.add_parser("remove", help="remove a datasource with all its documents")
    remove.add_argument("datasource", metavar="DATASOURCE", help="its name, as rag list gives it")
    remove.set_defaults(run=_rag_remove, quiet=True)


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
    ingest.add_argument("--depth", metavar="N", type=_depth, help="also the pages below, so many links away (0)")
    ingest.add_argument("--max-pages", metavar="N", type=_count, help="read at most so many pages (INGEST_MAX_PAGES)")
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
    ingest.set_defaults(run=_ingest, quiet=True)


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
    pace.add_argument("--speed", type=_speed, help="how many times faster than it was recorded (1)")
    pace.add_argument("--instant", action="store_true", help="show how it ended")
    slack.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (SLACK_HOST, or 127.0.0.1)")
    slack.add_argument(
        "--port", type=_port, default=argparse.SUPPRESS, help="port to listen on, 0 for any (SLACK_PORT, or 3000)"
    )
    slack.set_defaults(run=_slack)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from ai_platform_engineering.version import product_version

        print(f"{parser.prog} {product_version()}")
        parser.exit()


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; use a number from 0 to 65535")
    return int(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number that can be used; use a whole number from 1")
    return int(text)


def _depth(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 2):
        raise argparse.ArgumentTypeError(f"{text!r} is not a depth; use a whole number from 0 to 99")
    return int(text)


def _answer(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name.strip()):
        raise argparse.ArgumentTypeError(f"{text!r} is not an answer; use NAME=VALUE")
    return name.strip(), value


def _url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is not an http:// or https:// address")
    return text


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IP address") from None


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a speed; use a number above 0")
    return speed


def _add_listen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default=argparse.SUPPRESS, help="address to listen on (A2A_HOST, or 127.0.0.1)")
    parser.add_argument(
        "--port", type=_port, default=argparse.SUPPRESS, help="port to listen on, 0 for any (A2A_PORT, or 8000)"
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


def _serve(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.serving import begin_start

    begin_start()
    from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
    from ai_platform_engineering.utils.data_files import check_data_files

    # What is wrong with an agent's variables, the files or the port is said before the large libraries are loaded.
    registry = AgentRegistry.load(settings)
    check_data_files(settings)
    settings, listener = _listen(options, settings, "front")
    from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
    from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
    from ai_platform_engineering.utils.model_label import model_label

    approval = settings.describe_approval(sandbox_on=registry.sandbox_on)
    line = _ready_line("Platform Engineer", settings, model_label(settings), registry.sandbox_on, approval)
    return _run(create_app(settings, PlatformEngineerDeepAgent(settings, registry)), listener, line)


def _agent(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.serving import begin_start

    begin_start()
    from ai_platform_engineering.multi_agents.agent_registry import known_manifests
    from ai_platform_engineering.multi_agents.placement import sandbox_is_on, standalone
    from ai_platform_engineering.utils.data_files import check_data_files

    manifests = known_manifests(settings)
    entry = standalone(options.name, manifests, settings, sandbox_is_on(settings, manifests))
    _warn_about_unknown_settings(settings)
    check_data_files(settings, entry.name)
    settings, listener = _listen(options, settings, "behind")
    from ai_platform_engineering.multi_agents.agent_app import create_agent_app
    from ai_platform_engineering.utils.model_label import model_label

    model = model_label(settings, entry.name, manifests[entry.name].model)
    approval = settings.approval_level(sandboxed=entry.sandboxed)
    line = _ready_line(f"Agent {entry.name}", settings, model, entry.sandboxed, approval)
    return _run(create_agent_app(settings, entry.name), listener, line)


def _warn_about_unknown_settings(settings: Settings) -> None:
    import logging

    from ai_platform_engineering.multi_agents.agent_registry import known_manifests
    from ai_platform_engineering.unknown_settings import unknown_settings

    for sentence in unknown_settings(settings, known_manifests(settings)):
        logging.getLogger(__name__).warning("%s", sentence)


def _listen(options: argparse.Namespace, settings: Settings, place: Place) -> tuple[Settings, socket]:
    """The port, taken, and the settings that say which one it is."""
    from ai_platform_engineering.serving import listen
    from ai_platform_engineering.utils.keys import check_exposure

    host: str = getattr(options, "host", settings.a2a_host)
    listener = listen(host, getattr(options, "port", settings.a2a_port))
    try:
        check_exposure(settings, place, getattr(options, "published_on", listener.getsockname()[0]))
    except BaseException:
        listener.close()
        raise
    listening = {
        "a2a_host": host,
        "a2a_port": listener.getsockname()[1],
        "allowed_hosts": ",".join([settings.allowed_hosts, *getattr(options, "allowed_hosts", [])]),
    }
    return settings.model_copy(update=listening), listener


def _run(app: Starlette, listener: socket, ready_line: str) -> int:
    from ai_platform_engineering.serving import run
    from ai_platform_engineering.utils.tracing import trace_inline

    trace_inline()
    on_stop = {"on_stop": app.state.stop_work} if hasattr(app.state, "stop_work") else {}
    return run(app, listener, lambda: print(ready_line, flush=True), **on_stop)


def _ready_line(who: str, settings: Settings, model: str, sandbox_on: bool, approval: str) -> str:
    sandbox = "on" if sandbox_on else "off"
    return f"{who} is ready at {settings.public_url} (model: {model}, sandbox: {sandbox}, approval: {approval})"


def _agents_list(_options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry

    registry = AgentRegistry.load(settings)
    width = max((len(entry.name) for entry in registry.entries), default=0)
    for entry in registry.entries:
        where = entry.where if entry.enabled else "off"
        print(f"{entry.name:<{width}}  {where:<10}  {registry.description(entry.name)}")
    return 0


def _doctor(options: argparse.Namespace, settings: Settings) -> int:
    import asyncio

    from ai_platform_engineering.doctor import diagnose, show, to_json

    async def examine() -> int:
        report = await diagnose(settings, offline=options.offline)
        # Shown before the event loop closes: that waits for name lookups which nobody waits for any more.
        if options.json:
            print(to_json(report), flush=True)
        else:
            show(report)
        return 0 if report.ok else EXIT_UNUSABLE

    return asyncio.run(examine())


def _chat(options: argparse.Namespace, settings: Settings) -> int:
    if options.question is not None and not options.question.strip():
        return _refuse("The question is empty; leave it out to be asked for one.")
    answers = options.approve or options.reject is not None or bool(options.answer)
    if (answers or options.form) and options.question is not None:
        return _refuse("A question and an answer to a form cannot go together; ask first.")
    if answers and options.task is None and options.context is None:
        return _refuse("Which form is answered? Name its task with --task, or its conversation with --context.")
    if options.form and not answers:
        return _refuse("--form needs an answer: --answer, --approve or --reject.")
    if options.reject is not None and options.answer:
        return _refuse("--reject and --answer cannot go together.")
    if options.url is None:
        from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry

        # What is wrong with an agent's variables is said before the large libraries are loaded.
        for problem in AgentRegistry.load(settings).warnings:
            print(f"platform-engineer: {problem}", file=sys.stderr)
        settings = _beside_a_server(settings)
    from ai_platform_engineering.terminal.chat import ChatOptions, chat
    from ai_platform_engineering.terminal.scripted import Scripted

    scripted = Scripted(dict(options.answer), options.approve, options.reject, options.form) if answers else None
    return chat(
        ChatOptions(options.question, options.url, options.context, options.json, options.task, scripted), settings
    )


def _beside_a_server(settings: Settings) -> Settings:
    """Settings for a supervisor in this process: one that already runs here goes on writing its files alone."""
    from ai_platform_engineering.utils.a2a_common.log.file import LogInUseError
    from ai_platform_engineering.utils.data_files import check_data_files

    try:
        check_data_files(settings)
    except LogInUseError:
        print(
            "A supervisor is running on this data directory, so this chat is not kept. Use --url to talk to that one.",
            file=sys.stderr,
        )
        return settings.model_copy(update={"event_log": "memory", "conversations": "memory"})
    return settings


def _replay(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.terminal.replay import RecordingError, replay

    try:
        return replay(options.file, None if options.instant else options.speed, settings)
    except RecordingError as error:
        return _refuse(error)


def _tasks_list(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.tasks_command import STATES, TaskFile, list_tasks

    if options.state is not None and options.state not in STATES:
        return _refuse(f"--state {options.state!r} is none of {', '.join(STATES)}.")
    return list_tasks(TaskFile.of(settings, options.agent), options.limit, options.state, as_json=options.json)


def _tasks_show(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.tasks_command import TaskFile, TaskLookupError, show_task

    try:
        return show_task(TaskFile.of(settings, options.agent), options.id, as_json=options.json)
    except TaskLookupError as error:
        _refuse(error)
        return EXIT_UNUSABLE


def _tasks_export(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.tasks_command import TaskFile, TaskLookupError, export_task

    try:
        return export_task(TaskFile.of(settings, options.agent), options.id, options.output)
    except TaskLookupError as error:
        _refuse(error)
        return EXIT_UNUSABLE
    except OSError as error:
        return _refuse(f"{options.output} cannot be written: {error.strerror}.")


def _feedback_list(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.feedback_command import list_feedback
    from ai_platform_engineering.utils.errors import ReadableError

    try:
        return list_feedback(settings, options.limit, as_json=options.json)
    except ReadableError as error:
        _refuse(error)
        return EXIT_UNUSABLE


def _workflows_list(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.workflows_command import all_offers, list_workflows

    return list_workflows(all_offers(settings), as_json=options.json)


def _workflows_show(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.workflows_command import WorkflowLookupError, all_offers, show_workflow

    try:
        return show_workflow(all_offers(settings), options.name, as_json=options.json)
    except WorkflowLookupError as error:
        _refuse(error)
        return EXIT_UNUSABLE


def _workflows_run(options: argparse.Namespace, settings: Settings) -> int:
    name: str = options.name
    if options.url is None:
        from ai_platform_engineering.workflows_command import WorkflowLookupError, all_offers, ready_workflow

        try:
            name = ready_workflow(all_offers(settings), name).name
        except WorkflowLookupError as error:
            _refuse(error)
            return EXIT_UNUSABLE
        settings = _beside_a_server(settings)
    from ai_platform_engineering.workflows_run import RunOptions, run_workflow

    return run_workflow(RunOptions(name, dict(options.values), options.url, options.json), settings)


def _rag_serve(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.serving import begin_start

    begin_start()
    from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
    from ai_platform_engineering.utils.private_files import secure_data_dir

    # What is wrong with the list of hosts, or the port, is said before the large libraries are loaded.
    WebPolicy.of(settings)
    _warn_about_unknown_settings(settings)
    secure_data_dir(settings.data_dir)
    settings, listener = _listen(options, settings, "behind")
    from ai_platform_engineering.knowledge_bases.rag.app import MCP_PATH, create_rag_app

    # A2A_PUBLIC_URL is the supervisor's, or an agent's.
    address = settings.model_copy(update={"a2a_public_url": None}).public_url
    return _run(create_rag_app(settings), listener, f"Knowledge base is ready at {address}{MCP_PATH}")


def _rag_search(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.rag_command import search

    return _rag(search(settings, options.query, options.limit, options.datasource, as_json=options.json))


def _rag_list(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.rag_command import list_datasources

    return _rag(list_datasources(settings, as_json=options.json))


def _rag_remove(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.rag_command import remove_datasource

    return _rag(remove_datasource(settings, options.datasource))


def _rag(command: Coroutine[Any, Any, int]) -> int:
    import asyncio

    from ai_platform_engineering.utils.errors import ReadableError

    try:
        return asyncio.run(command)
    except ReadableError as error:
        _refuse(error)
        return EXIT_UNUSABLE


def _skills_list(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.skills_command import list_skills

    command = list_skills(settings, options.url, options.search, with_overridden=options.all, as_json=options.json)
    return _skills(command)


def _skills_show(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.skills_command import show_skill

    return _skills(show_skill(settings, options.url, options.name, options.file, as_json=options.json))


def _skills_add(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.skills_command import add_skill

    access = _skill_access(options)
    if isinstance(access, str):
        return _refuse(access)
    command = add_skill(settings, options.url, options.path, access, replace=options.replace, as_json=options.json)
    return _skills(command)


def _skills_remove(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.skills_command import remove_skill

    access = _skill_access(options)
    if isinstance(access, str):
        return _refuse(access)
    return _skills(remove_skill(settings, options.url, options.name, access, as_json=options.json))


def _skill_access(options: argparse.Namespace) -> AskedAccess | str:
    """The visibility that the options name, or the sentence that says what is wrong with them."""
    from ai_platform_engineering.skills_command import AskedAccess

    if options.team and options.visibility not in (None, "team"):
        return f"--team is for --visibility team, not {options.visibility}."
    if options.visibility == "team" and not options.team:
        return "--visibility team needs the name of the team: --team NAME."
    return AskedAccess("team" if options.team else options.visibility, options.team)


def _skills_validate(options: argparse.Namespace, _settings: Settings) -> int:
    from ai_platform_engineering.skills_validation import validate_skills

    return validate_skills(options.paths, as_json=options.json)


def _skills_refresh(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.skills_command import refresh_skills

    return _skills(refresh_skills(settings, options.url, as_json=options.json))


def _skills(command: Coroutine[Any, Any, int]) -> int:
    import asyncio

    from ai_platform_engineering.skills_command import SkillRefusedError
    from ai_platform_engineering.skills_path import PathError
    from ai_platform_engineering.utils.a2a_common.supervisor_run import SupervisorError

    try:
        return asyncio.run(command)
    except PathError as error:
        return _refuse(error)
    except (SkillRefusedError, SupervisorError) as error:
        refused = _refuse(error)
        return refused if isinstance(error, SupervisorError) and error.misconfigured else EXIT_UNUSABLE


def _slack(options: argparse.Namespace, settings: Settings) -> int:
    if options.manifest:
        from ai_platform_engineering.integrations.slack_bot.manifest import manifest

        print(manifest(settings), end="")
        return 0
    if options.preview is not None:
        return _slack_preview(options, settings)
    if options.html or options.speed or options.instant:
        return _refuse("--html, --speed and --instant go with --preview.")
    from importlib.util import find_spec

    if find_spec("slack_bolt") is None:
        from ai_platform_engineering.utils.extras import install_command

        return _refuse(f"The Slack bot needs libraries of its own: {install_command('slack')}.")
    from ai_platform_engineering.integrations.slack_bot.tokens import check_tokens
    from ai_platform_engineering.utils.private_files import secure_data_dir

    # What is missing is said before the large libraries are loaded.
    check_tokens(settings)
    _warn_about_unknown_settings(settings)
    secure_data_dir(settings.data_dir)
    from ai_platform_engineering.integrations.slack_bot.serve import run_slack_bot
    from ai_platform_engineering.utils.errors import ReadableError

    listening = {f"slack_{name}": getattr(options, name) for name in ("host", "port") if hasattr(options, name)}
    try:
        return run_slack_bot(settings.model_copy(update=listening))
    except ReadableError as error:
        _refuse(error)
        return EXIT_UNUSABLE


def _slack_preview(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.integrations.slack_bot.preview.command import PreviewOptions, preview
    from ai_platform_engineering.terminal.replay import RecordingError
    from ai_platform_engineering.utils.errors import ReadableError

    speed = None if options.instant else options.speed or 1.0
    try:
        return preview(PreviewOptions(options.preview, options.html, speed), settings)
    except (RecordingError, ReadableError) as error:
        return _refuse(error)


def _ingest(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.ingest_command import IngestOptions, IngestRefusedError, run_ingest
    from ai_platform_engineering.utils.errors import ReadableError

    asked = IngestOptions(
        source=options.source,
        datasource=options.datasource,
        depth=options.depth,
        max_pages=options.max_pages,
        allow_hosts=options.allow_host,
        as_json=options.json,
        link_base=options.link_base,
    )
    try:
        return run_ingest(asked, settings)
    except ReadableError as error:
        refused = _refuse(error)
        return refused if isinstance(error, IngestRefusedError) else EXIT_UNUSABLE
    except KeyboardInterrupt:
        print("Interrupted. What was ingested stays; the same command goes on from there.", file=sys.stderr)
        return EXIT_INTERRUPTED


def _sandbox_reset(_options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.sandbox.world import WorldError, reset_world, world_path

    path = world_path(settings.data_dir)
    try:
        reset_world(path)
    except WorldError as error:
        return _refuse(error)
    except OSError as error:
        return _refuse(f"{path} cannot be written: {error.strerror}. Choose another directory with DATA_DIR.")
    print(f"The sandbox was reset: {path}")
    return 0


def _sandbox_path(_options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.sandbox.world import world_path

    print(world_path(settings.data_dir))
    return 0


def _refuse(error: Exception | str) -> int:
    print(f"platform-engineer: {error}", file=sys.stderr)
    return EXIT_MISCONFIGURED


if __name__ == "__main__":
    sys.exit(main())
