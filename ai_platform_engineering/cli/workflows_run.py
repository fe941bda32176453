"""`platform-engineer workflows run`: asks a supervisor for a workflow by name and fills in its form, for scripts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from ai_platform_engineering.cli.chat import settings_beside_server
from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.cli.workflows import WorkflowLookupError, ready_workflow
from ai_platform_engineering.events import FinalResult, InputRequired
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.background import Background
from ai_platform_engineering.terminal.chat import (
    ANSWERED,
    INPUT_NEEDED,
    INTERRUPTED,
    MISCONFIGURED,
    NOT_ANSWERED,
    output_for,
)
from ai_platform_engineering.terminal.conversation import Conversation
from ai_platform_engineering.terminal.local import running_here
from ai_platform_engineering.terminal.output import Output
from ai_platform_engineering.terminal.scripted import NoAnswerError, Scripted
from ai_platform_engineering.terminal.view import View
from ai_platform_engineering.text.form_words import command_lines
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor, connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.access_tokens import SupervisorAuth


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`name` is asked for as it is; `values` are texts, which the supervisor reads as what the form declares."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    as_json: bool = False


def start_workflow(options: argparse.Namespace, settings: Settings) -> int:
    name: str = options.name
    if options.url is None:
        try:
            name = ready_workflow(settings, name).name
        except WorkflowLookupError as error:
            return fail(error)
        settings = settings_beside_server(settings)
    return _run_workflow(RunOptions(name, dict(options.values), options.url, options.json), settings)


def _run_workflow(options: RunOptions, settings: Settings) -> int:
    """The exit code: 0 when every step was done, 1 when not; the others are those of `chat`."""
    output = output_for(None, as_json=options.as_json)
    try:
        with Background() as background:
            supervisor = _supervisor(options, settings, background)
            conversation = Conversation(supervisor, background)
            return _run(options, conversation, output)
    except SupervisorError as error:
        _complain(str(error))
        return MISCONFIGURED if error.misconfigured else NOT_ANSWERED
    except NoAnswerError as error:
        _complain(str(error))
        return MISCONFIGURED


def _supervisor(options: RunOptions, settings: Settings, background: Background) -> Supervisor:
    if options.url is None:
        return background.hold(running_here(settings))
    return background.hold(connected(options.url, SupervisorAuth(settings)))


def _run(options: RunOptions, conversation: Conversation, output: Output) -> int:
    conversation.ask(options.name, output, typed=False)
    if options.values and not conversation.interrupted:
        if conversation.parked is None:
            _complain(f"{options.name} showed no form, so the values were not used. Is it a workflow there?")
            return NOT_ANSWERED
        answer = Scripted(options.values)
        form = answer.form_of(conversation.forms)
        conversation.answer(form, answer.answer_to(form), output, typed=False)
    if conversation.parked is not None:
        for line in command_lines(conversation.forms, conversation.parked.task_id, options.url):
            sys.stderr.write(f"{line}\n")
    if conversation.interrupted:
        return INTERRUPTED
    match conversation.view.ending:
        case FinalResult() if _all_done(conversation.view):
            return ANSWERED
        case InputRequired():
            return INPUT_NEEDED
        case _:
            return NOT_ANSWERED


def _all_done(view: View) -> bool:
    """Whether every step was done. A workflow that was stopped ends with an answer too, and one that was not started
    has no plan."""
    return view.plan is not None and all(step.status == "completed" for step in view.plan.steps)


def _complain(text: str) -> None:
    sys.stderr.write(f"platform-engineer: {text}\n")
