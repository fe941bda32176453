"""`platform-engineer chat`: checks the options and opens the conversation."""

from __future__ import annotations

import argparse
import sys

from ai_platform_engineering.cli.exit_codes import refuse
from ai_platform_engineering.multi_agents.agent_registry import AgentRegistry
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.data_files import check_data_files
from ai_platform_engineering.storage.event_log.file import LogInUseError


def run_chat(options: argparse.Namespace, settings: Settings) -> int:
    answers = options.approve or options.reject is not None or bool(options.answer)
    if problem := _conflict(options, answers=answers):
        return refuse(problem)
    if options.url is None:
        # Problems with settings of agents are reported before the large libraries are imported.
        for problem in AgentRegistry.load(settings).warnings:
            print(f"platform-engineer: {problem}", file=sys.stderr)
        settings = settings_beside_server(settings)
    from ai_platform_engineering.terminal.chat import ChatOptions, chat
    from ai_platform_engineering.terminal.scripted import Scripted

    scripted = Scripted(dict(options.answer), options.approve, options.reject, options.form) if answers else None
    return chat(
        ChatOptions(options.question, options.url, options.context, options.json, options.task, scripted), settings
    )


def _conflict(options: argparse.Namespace, *, answers: bool) -> str | None:
    """Why these options cannot be used together."""
    if options.question is not None and not options.question.strip():
        return "The question is empty; leave it out to be asked for one."
    if (answers or options.form) and options.question is not None:
        return "A question and an answer to a form cannot go together; ask first."
    if answers and options.task is None and options.context is None:
        return "Which form is answered? Name its task with --task, or its conversation with --context."
    if options.form and not answers:
        return "--form needs an answer: --answer, --approve or --reject."
    if options.reject is not None and options.answer:
        return "--reject and --answer cannot go together."
    return None


def settings_beside_server(settings: Settings) -> Settings:
    """Settings for a supervisor in this process. While another one writes the files, this one keeps to memory."""
    try:
        check_data_files(settings)
    except LogInUseError:
        print(
            "A supervisor is running on this data directory, so this chat is not kept. Use --url to talk to that one.",
            file=sys.stderr,
        )
        return settings.model_copy(update={"event_log": "memory", "conversations": "memory"})
    return settings
