"""`platform-engineer chat` and `replay`: the supervisor, or a recorded run, in the terminal."""

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
        # Reported before the large libraries are imported.
        for problem in AgentRegistry.load(settings).warnings:
            print(f"platform-engineer: {problem}", file=sys.stderr)
        settings = settings_beside_server(settings)
    from ai_platform_engineering.terminal.chat import ChatOptions, chat
    from ai_platform_engineering.terminal.scripted import ScriptedAnswer

    scripted = ScriptedAnswer(dict(options.answer), options.approve, options.reject, options.form) if answers else None
    return chat(
        ChatOptions(options.question, options.url, options.context, options.json, options.task, scripted), settings
    )


def run_replay(options: argparse.Namespace, settings: Settings) -> int:
    from ai_platform_engineering.recordings import RecordingError
    from ai_platform_engineering.terminal.replay import replay

    try:
        return replay(options.file, None if options.instant else options.speed, settings)
    except RecordingError as error:
        return refuse(error)


def _conflict(options: argparse.Namespace, *, answers: bool) -> str | None:
    """A message if the options cannot be combined."""
    if options.question is not None and not options.question.strip():
        return "The question is empty; leave it out to type questions."
    if (answers or options.form) and options.question is not None:
        return "A question and an answer to a form cannot be combined; ask first."
    if answers and options.task is None and options.context is None:
        return "Which form is answered? Name its task with --task, or its conversation with --context."
    if options.form and not answers:
        return "--form needs an answer: --answer, --approve or --reject."
    if options.reject is not None and options.answer:
        return "--reject and --answer cannot be combined."
    return None


def settings_beside_server(settings: Settings) -> Settings:
    """Settings for a supervisor in this process. If another one uses the data directory, this one stores in memory."""
    try:
        check_data_files(settings)
    except LogInUseError:
        print(
            "A supervisor is running on this data directory, so this chat is not stored. Use --url to use that one.",
            file=sys.stderr,
        )
        in_memory = {"event_log": "memory", "conversations": "memory", "langgraph_checkpoint_type": "memory"}
        return settings.model_copy(update=in_memory)
    return settings
