"""`platform-engineer workflows run`: starts a workflow and fills in its form, for scripts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

from ai_platform_engineering.cli.chat import settings_beside_server
from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.cli.printing import print_note
from ai_platform_engineering.cli.workflows import WorkflowLookupError, ready_workflow
from ai_platform_engineering.events import FinalResult, InputRequired
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.background import BackgroundLoop
from ai_platform_engineering.terminal.chat import (
    ANSWERED,
    INPUT_NEEDED,
    INTERRUPTED,
    MISCONFIGURED,
    NOT_ANSWERED,
    output_for,
)
from ai_platform_engineering.terminal.conversation import ChatConversation
from ai_platform_engineering.terminal.local import local_supervisor
from ai_platform_engineering.terminal.output import Output
from ai_platform_engineering.terminal.scripted import NoAnswerError, ScriptedAnswer
from ai_platform_engineering.terminal.view import View
from ai_platform_engineering.text.form_text import command_lines
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor, connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`name` is sent as the request. `values` are texts; the supervisor converts them to the types of the fields."""

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
    """Return the exit code: 0 if every step was completed, 1 if not, otherwise as `chat`."""
    output = output_for(None, as_json=options.as_json)
    try:
        with BackgroundLoop() as background:
            supervisor = _supervisor(options, settings, background)
            conversation = ChatConversation(supervisor, background)
            return _run(options, conversation, output)
    except SupervisorError as error:
        _print_error(str(error))
        return MISCONFIGURED if error.misconfigured else NOT_ANSWERED
    except NoAnswerError as error:
        _print_error(str(error))
        return MISCONFIGURED


def _supervisor(options: RunOptions, settings: Settings, background: BackgroundLoop) -> Supervisor:
    if options.url is None:
        return background.enter_context(local_supervisor(settings))
    return background.enter_context(connected(options.url, SupervisorAuth(settings, options.url)))


def _run(options: RunOptions, conversation: ChatConversation, output: Output) -> int:
    conversation.ask(options.name, output, typed=False)
    if options.values and not conversation.interrupted:
        if conversation.waiting_task is None:
            _print_error(f"{options.name} showed no form, so the values were not used. Check the name of the workflow.")
            return NOT_ANSWERED
        answer = ScriptedAnswer(options.values)
        form = answer.select_form(conversation.forms)
        conversation.answer(form, answer.answer_to(form), output, typed=False)
    if conversation.waiting_task is not None:
        for line in command_lines(conversation.forms, conversation.waiting_task.task_id, options.url):
            print_note(line)
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
    """Whether every step was completed. A stopped workflow also ends with an answer; one without a plan never ran."""
    return view.plan is not None and all(step.status == "completed" for step in view.plan.steps)


def _print_error(text: str) -> None:
    print_note(f"platform-engineer: {text}")
