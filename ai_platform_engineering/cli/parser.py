"""The arguments of all commands.

For a fast `--help`, only modules about arguments are imported. The module of a command is imported when the command
runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from ai_platform_engineering.cli import argument_types as types
from ai_platform_engineering.cli import operator_parser as operators
from ai_platform_engineering.cli.command_modules import command

RAG_PORT: Final = 8010


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="platform-engineer",
        description="A supervisor that plans platform-engineering requests and delegates them to domain agents. "
        "Without a command it runs the supervisor's server.",
        epilog="Settings are environment variables or lines of a file named .env; see docs/configuration.md.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, dest=argparse.SUPPRESS, help="show the version and exit")
    # The options may come before or after a command. SUPPRESS keeps the command's default from hiding the first value.
    _add_listen_options(parser)
    parser.set_defaults(run=command("servers.serve"), quiet=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    _add_serve(commands)

    agent = commands.add_parser("agent", help="run one agent as a separate server")
    agent.add_argument("name", help="name of the agent, for example argocd")
    _add_listen_options(agent)
    agent.set_defaults(run=command("servers.serve_agent"))

    agents_group = commands.add_parser("agents", help="list the agents, install their MCP servers")
    agents = agents_group.add_subparsers(metavar="ACTION", required=True)
    agents_list = agents.add_parser("list", help="list all known agents")
    agents_list.set_defaults(run=command("agents.list_agents"), quiet=True)
    install = agents.add_parser(
        "install",
        help="install the stdio MCP servers of agents",
        description="Install the stdio MCP servers of agents, with the versions and hashes of their locks.",
    )
    install.add_argument(
        "names", nargs="*", metavar="NAME", help="an agent, or all (default: agents whose required settings are set)"
    )
    install.set_defaults(run=command("agents.install_servers"), quiet=True)

    doctor = commands.add_parser(
        "doctor",
        help="check the model and every agent: enabled, where, why, reachable, tools",
        description="Checks every agent: starts its MCP servers, makes one test call of its backend, and asks the "
        "model one short question. Exits with 0 if the model and every enabled agent can be used, with 1 if one "
        "cannot, with 2 if the settings are invalid.",
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.add_argument("--offline", action="store_true", help="call neither backends nor the model")
    doctor.set_defaults(run=command("doctor.run_doctor"), quiet=True)

    _add_chat(commands)

    operators.add_login(commands)

    replay = commands.add_parser("replay", help="play a recorded run in the terminal")
    replay.add_argument("file", metavar="FILE", help="recording by chat --json or tasks export; - for standard input")
    pace = replay.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=types.speed, default=1.0, help="factor of the recorded speed (default 1)")
    pace.add_argument("--instant", action="store_true", help="show the end at once")
    replay.set_defaults(run=command("chat.run_replay"), quiet=True)

    _add_tasks(commands)
    _add_conversations(commands)
    _add_memories(commands)
    operators.add_audit(commands)
    operators.add_policy(commands)
    operators.add_usage(commands)
    operators.add_backup(commands)
    _add_feedback(commands)
    _add_workflows(commands)
    _add_skills(commands)
    _add_ingest(commands)
    _add_rag(commands)
    _add_slack(commands)

    sandbox = commands.add_parser("sandbox", help="the simulated organization with sample data").add_subparsers(
        metavar="ACTION", required=True
    )
    reset = sandbox.add_parser("reset", help="reset the sandbox to its initial data")
    reset.set_defaults(run=command("agents.restore_sandbox"), quiet=True)
    path = sandbox.add_parser("path", help="print the path of the sandbox file")
    path.set_defaults(run=command("agents.show_sandbox_path"), quiet=True)
    return parser


def _add_tasks(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    tasks = commands.add_parser("tasks", help="list, show and export stored tasks").add_subparsers(
        metavar="ACTION", required=True
    )
    tasks_list = tasks.add_parser("list", help="list tasks, the most recently changed first")
    tasks_list.add_argument("--limit", type=types.count, default=20, help="maximum number (default 20)")
    tasks_list.add_argument("--state", help="only tasks in this state, for example completed or input-required")
    tasks_list.add_argument("--json", action="store_true", help="print one JSON object per task")
    tasks_list.set_defaults(run=command("tasks.list_tasks"), quiet=True)
    tasks_show = tasks.add_parser("show", help="print the events of a task")
    tasks_show.add_argument("--json", action="store_true", help="print the task as a JSON object")
    tasks_show.set_defaults(run=command("tasks.show_task"), quiet=True)
    tasks_export = tasks.add_parser("export", help="write a task as a recording for replay")
    tasks_export.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="file to write (default: standard output)"
    )
    tasks_export.set_defaults(run=command("tasks.export_task"), quiet=True)
    for action in (tasks_show, tasks_export):
        action.add_argument("id", metavar="ID", help="id of the task, or a unique beginning of it")
    for action in (tasks_list, tasks_show, tasks_export):
        action.add_argument("--agent", metavar="NAME", help="tasks of this agent's server instead of the supervisor's")


def _add_conversations(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    conversations = commands.add_parser(
        "conversations", help="list, show and delete the supervisor's stored conversations"
    ).add_subparsers(metavar="ACTION", required=True)
    listing = conversations.add_parser("list", help="list conversations, the most recently changed first")
    listing.add_argument("--limit", type=types.count, default=20, help="maximum number (default 20)")
    listing.add_argument("--json", action="store_true", help="print one JSON object per conversation")
    listing.set_defaults(run=command("conversations.list_conversations"), quiet=True)
    show = conversations.add_parser("show", help="print the questions, answers and open forms of a conversation")
    show.add_argument("--json", action="store_true", help="print the conversation as a JSON object")
    show.set_defaults(run=command("conversations.show_conversation"), quiet=True)
    delete = conversations.add_parser(
        "delete",
        help="delete a conversation with its tasks, events and checkpoints",
        description="Deletes a conversation with its tasks, events and checkpoints. While a supervisor runs, only it "
        "can delete them: give its address with --url.",
    )
    delete.add_argument("--url", type=types.url, help="URL of the running supervisor (default: none is running)")
    delete.add_argument("--yes", action="store_true", help="delete without asking, for scripts")
    delete.add_argument("--force", action="store_true", help="cancel the tasks that run or wait for an answer")
    delete.set_defaults(run=command("conversations.delete_conversation"), quiet=True)
    for action in (show, delete):
        action.add_argument("id", metavar="ID", help="id of the conversation, or a unique beginning of it")


def _add_memories(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    memories = commands.add_parser(
        "memories", help="list and forget what a person asked the supervisor to remember"
    ).add_subparsers(metavar="ACTION", required=True)
    listing = memories.add_parser("list", help="list the memories of a user, the newest first")
    listing.set_defaults(run=command("memories.list_memories"))
    forget = memories.add_parser("forget", help="forget one memory")
    forget.add_argument("id", metavar="ID", help="id of the memory, see memories list")
    forget.set_defaults(run=command("memories.forget_memory"))
    forget_all = memories.add_parser("forget-all", help="forget all memories of a user")
    forget_all.add_argument("--yes", action="store_true", help="forget without asking, for scripts")
    forget_all.set_defaults(run=command("memories.forget_all_memories"))
    for action in (listing, forget, forget_all):
        action.add_argument(
            "--user", metavar="ID", help="the user, for example slack:T1/U1 (default: callers without a user)"
        )
        action.add_argument(
            "--subject", metavar="SUB", help="of the caller with this subject of its access token (default: any key)"
        )
        action.add_argument("--json", action="store_true", help="print JSON")
        action.set_defaults(quiet=True)


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser("serve", help="run the supervisor (the default)")
    _add_listen_options(serve)
    serve.add_argument(
        "--published-on",
        metavar="ADDRESS",
        type=types.address,
        default=argparse.SUPPRESS,
        help="in a container: the host address on which the port is published; it decides whether callers need a key "
        "(default: the listening address)",
    )
    serve.add_argument(
        "--workers",
        metavar="N",
        type=types.count,
        default=argparse.SUPPRESS,
        help="processes that share the port and the work; more than one needs EVENT_LOG=postgres (default 1)",
    )
    serve.set_defaults(run=command("servers.serve"))


def _add_chat(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    chat = commands.add_parser(
        "chat",
        help="talk to the supervisor in the terminal",
        description="Talks to the supervisor. With a question, the exit code is 0 if it was answered, 1 if not, 2 if "
        "arguments or settings are invalid, 3 if input is needed, 130 if it was interrupted. If standard output is not "
        "a terminal, only the answer is written to it; progress goes to standard error.",
    )
    chat.add_argument("question", nargs="?", help="ask this and exit; without it, questions are read until Ctrl-D")
    chat.add_argument("--url", type=types.url, help="URL of a running supervisor (default: one in this process)")
    chat.add_argument("--context", metavar="ID", help="continue this conversation")
    chat.add_argument("--json", action="store_true", help="print one JSON object per event")
    chat.add_argument("--task", metavar="ID", help="continue this task, which waits for input")
    answers = chat.add_argument_group("answers", "to an open form of the task or the conversation")
    answers.add_argument(
        "--answer",
        metavar="NAME=VALUE",
        type=types.answer,
        action="append",
        default=[],
        help="value of a field or, with --approve, of an argument to change (repeatable)",
    )
    decision = answers.add_mutually_exclusive_group()
    decision.add_argument("--approve", action="store_true", help="approve, or submit the form with its proposed values")
    decision.add_argument("--reject", metavar="REASON", help="reject, or dismiss the form")
    answers.add_argument("--form", metavar="ID", help="id of the form, if several are open")
    chat.set_defaults(run=command("chat.run_chat"), quiet=True)


def _add_feedback(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    feedback = commands.add_parser("feedback", help="users' feedback on answers").add_subparsers(
        metavar="ACTION", required=True
    )
    feedback_list = feedback.add_parser("list", help="list feedback, the newest first")
    feedback_list.add_argument("--limit", type=types.count, default=20, help="maximum number (default 20)")
    feedback_list.add_argument("--json", action="store_true", help="print one JSON object per feedback")
    feedback_list.set_defaults(run=command("feedback.list_feedback"), quiet=True)


def _add_workflows(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    workflows = commands.add_parser("workflows", help="the self-service workflows").add_subparsers(
        metavar="ACTION", required=True
    )
    workflows_list = workflows.add_parser("list", help="list all workflows, with the reason if one cannot be started")
    workflows_list.add_argument("--json", action="store_true", help="print one JSON object per workflow")
    workflows_list.set_defaults(run=command("workflows.list_workflows"), quiet=True)
    workflows_show = workflows.add_parser("show", help="print the inputs and the steps of a workflow")
    workflows_show.add_argument("name", metavar="NAME", help="name or title of the workflow")
    workflows_show.add_argument("--json", action="store_true", help="print the workflow as a JSON object")
    workflows_show.set_defaults(run=command("workflows.show_workflow"), quiet=True)
    workflows_run = workflows.add_parser(
        "run",
        help="start a workflow and fill in its form",
        description="Starts a workflow. The exit code is 0 if all its steps were completed, 1 if not, 2 if arguments "
        "or settings are invalid, 3 if a form or an approval is open, 130 if it was interrupted.",
    )
    workflows_run.add_argument("name", metavar="NAME", help="name or title of the workflow")
    workflows_run.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=types.answer,
        action="append",
        default=[],
        dest="values",
        help="value of an input (repeatable)",
    )
    workflows_run.add_argument(
        "--url", type=types.url, help="URL of a running supervisor (default: one in this process)"
    )
    workflows_run.add_argument("--json", action="store_true", help="print one JSON object per event")
    workflows_run.set_defaults(run=command("workflows_run.start_workflow"), quiet=True)


def _add_skills(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    skills = commands.add_parser(
        "skills",
        help="the skills that the supervisor and its agents use",
        description="Manages the skills of this machine or, with --url, of a running supervisor. The exit code is 0 on "
        "success, 1 on failure, 2 if arguments or settings are invalid.",
    ).add_subparsers(metavar="ACTION", required=True)
    listing = skills.add_parser("list", help="list the available skills")
    listing.add_argument("--search", metavar="QUERY", default="", help="only matching skills, the best match first")
    listing.add_argument("--all", action="store_true", help="also skills that another skill of the same name overrides")
    listing.set_defaults(run=command("skills.list_skills"))
    show = skills.add_parser("show", help="print description, source and instructions of a skill")
    show.add_argument("name", metavar="NAME", help="name of the skill")
    show.add_argument("--file", metavar="PATH", help="print only this file of the skill")
    show.set_defaults(run=command("skills.show_skill"))
    add = skills.add_parser("add", help="add a skill; the next request can use it")
    add.add_argument("path", metavar="PATH", type=Path, help="a folder, a SKILL.md, a zip or a tar file")
    add.add_argument("--replace", action="store_true", help="replace the skill of this name and visibility")
    add.set_defaults(run=command("skills.add_skill"))
    remove = skills.add_parser("remove", help="remove a skill that was added")
    remove.add_argument("name", metavar="NAME", help="name of the skill")
    remove.set_defaults(run=command("skills.remove_skill"))
    for action in (add, remove):
        action.add_argument(
            "--visibility",
            choices=("global", "team", "personal"),
            help="who can use the skill (default: global, or team with --team)",
        )
        action.add_argument("--team", metavar="NAME", help="team of a team skill")
    validate = skills.add_parser(
        "validate",
        help="check skills without storing them",
        description="Checks skills as the server does and lists every problem. The exit code is 1 if one is invalid.",
    )
    validate.add_argument("paths", metavar="PATH", nargs="+", type=Path, help="folders, SKILL.md files, archives")
    validate.set_defaults(run=command("skills_validation.validate_skills"))
    refresh = skills.add_parser("refresh", help="reload all sources; fetches Git repositories")
    refresh.set_defaults(run=command("skills.refresh_skills"))
    for action in (listing, show, add, remove, refresh):
        action.add_argument(
            "--url", type=types.url, help="URL of a running supervisor (default: the skills of this machine)"
        )
    for action in (listing, show, add, remove, validate, refresh):
        action.add_argument("--json", action="store_true", help="print JSON")
        action.set_defaults(quiet=True)


def _add_rag(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rag = commands.add_parser("rag", help="the knowledge base").add_subparsers(metavar="ACTION", required=True)
    serve = rag.add_parser("serve", help="run the knowledge base as a separate server (MCP and REST)")
    serve.add_argument("--host", default=argparse.SUPPRESS, help="listening address (default: A2A_HOST, or 127.0.0.1)")
    serve.add_argument(
        "--port", type=types.port, default=RAG_PORT, help=f"listening port, 0 for any (default {RAG_PORT})"
    )
    _add_allowed_host(serve)
    serve.set_defaults(run=command("servers.serve_knowledge_base"))
    search = rag.add_parser("search", help="search the knowledge base")
    search.add_argument("query", metavar="QUERY", help="a question, or the words a document would use")
    search.add_argument("--datasource", metavar="NAME", help="search only this datasource")
    search.add_argument("--limit", type=types.count, default=5, help="maximum number of results (default 5)")
    search.add_argument("--json", action="store_true", help="print the results as a JSON object")
    search.set_defaults(run=command("rag.search"), quiet=True)
    rag_list = rag.add_parser("list", help="list the datasources")
    rag_list.add_argument("--json", action="store_true", help="print one JSON object per datasource")
    rag_list.set_defaults(run=command("rag.list_datasources"), quiet=True)
    remove = rag.add_parser("remove", help="remove a datasource with all its documents")
    remove.add_argument("datasource", metavar="DATASOURCE", help="name of the datasource, see rag list")
    remove.set_defaults(run=command("rag.remove_datasource"), quiet=True)


def _add_ingest(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    ingest = commands.add_parser(
        "ingest",
        help="add documents to the knowledge base",
        description="Adds new and changed Markdown, HTML, reStructuredText, plain text and PDF documents to the "
        "knowledge base, and removes documents that no longer exist. The exit code is 0 if all documents were read, "
        "1 if some could not be read, 2 if arguments or settings are invalid, 130 if it was interrupted; "
        "the same command then continues from there.",
    )
    ingest.add_argument("source", metavar="SOURCE", help="a folder, a file, or the URL of a page or a sitemap")
    ingest.add_argument("--datasource", metavar="NAME", help="name of the datasource (default: folder or host)")
    ingest.add_argument(
        "--depth", metavar="N", type=types.depth, help="depth of links to follow below the page (default 0)"
    )
    ingest.add_argument(
        "--max-pages", metavar="N", type=types.count, help="maximum number of pages (default: INGEST_MAX_PAGES)"
    )
    ingest.add_argument(
        "--allow-host",
        metavar="HOST",
        action="append",
        default=[],
        help="also read pages of this host, if a sitemap lists them or FETCH_URL_ALLOWED_HOSTS is set (repeatable)",
    )
    ingest.add_argument(
        "--link-base",
        metavar="URL",
        help="base URL for links to the files, as in URL/guides/deploy.md (default: file:// paths)",
    )
    ingest.add_argument("--json", action="store_true", help="print the result as a JSON object")
    ingest.set_defaults(run=command("ingest.ingest_source"), quiet=True)


def _add_slack(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    slack = commands.add_parser(
        "slack",
        help="run the Slack bot, or preview a recording",
        description="Runs the Slack bot; docs/slack.md describes the setup. --preview and --manifest do not start the "
        "bot and need neither Slack nor a token.",
    )
    instead = slack.add_mutually_exclusive_group()
    instead.add_argument(
        "--preview",
        metavar="FILE",
        help="show a recording of chat --json (- for standard input) as it looks in Slack",
    )
    instead.add_argument("--manifest", action="store_true", help="print the manifest for creating the Slack app")
    preview = slack.add_argument_group("preview")
    preview.add_argument("--html", metavar="OUT", type=Path, help="write an HTML page with a slider through the run")
    pace = preview.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=types.speed, help="factor of the recorded speed (default 1)")
    pace.add_argument("--instant", action="store_true", help="show only the end")
    slack.add_argument(
        "--host", default=argparse.SUPPRESS, help="listening address (default: SLACK_HOST, or 127.0.0.1)"
    )
    slack.add_argument(
        "--port",
        type=types.port,
        default=argparse.SUPPRESS,
        help="listening port, 0 for any (default: SLACK_PORT, or 3000)",
    )
    slack.set_defaults(run=command("slack.run_slack"))


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from ai_platform_engineering.installation import product_version

        print(f"{parser.prog} {product_version()}")
        parser.exit()


def _add_listen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default=argparse.SUPPRESS, help="listening address (default: A2A_HOST, or 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=types.port,
        default=argparse.SUPPRESS,
        help="listening port, 0 for any (default: A2A_PORT, or 8000)",
    )
    _add_allowed_host(parser)


def _add_allowed_host(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=argparse.SUPPRESS,
        dest="allowed_hosts",
        help="also accept this host name, in addition to ALLOWED_HOSTS (repeatable)",
    )
