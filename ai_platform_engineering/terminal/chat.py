"""`platform-engineer chat`: one question or a conversation, with a supervisor in this process or at a URL."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

from rich.console import Console
from rich.text import Text

from ai_platform_engineering.events import FinalResult, InputRequired
from ai_platform_engineering.final_results import cut_reason_of
from ai_platform_engineering.runs.plan import WORKFLOW_TOOL
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.background import BackgroundLoop
from ai_platform_engineering.terminal.commands import InfoCommands
from ai_platform_engineering.terminal.conversation import ChatConversation
from ai_platform_engineering.terminal.form_dialogue import Prompter, answer_forms
from ai_platform_engineering.terminal.keyboard import echo_off, question_history, read_question
from ai_platform_engineering.terminal.output import JsonOutput, Output, PlainOutput
from ai_platform_engineering.terminal.prompter import TerminalPrompter
from ai_platform_engineering.terminal.rendering import symbols_for
from ai_platform_engineering.terminal.screen import Screen
from ai_platform_engineering.terminal.scripted import NoAnswerError, ScriptedAnswer
from ai_platform_engineering.terminal.view import CallFinished, ToolCall, View
from ai_platform_engineering.text.form_text import BY_MESSAGE, command_lines
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor, connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.characters import clean
from ai_platform_engineering.utils.private_files import create_private_file
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth

ANSWERED: Final = 0
NOT_ANSWERED: Final = 1
MISCONFIGURED: Final = 2
INPUT_NEEDED: Final = 3
CUT_OFF: Final = 4
INTERRUPTED: Final = 130

STAYS_OPEN: Final = "It stays open: /answer brings it back. Your next question begins a new conversation."
NEW_CONVERSATION: Final = "A form is open there, so this question begins a new conversation."


@dataclass(frozen=True, slots=True)
class ChatOptions:
    question: str | None = None
    url: str | None = None
    context_id: str | None = None
    as_json: bool = False
    task_id: str | None = None
    """A task with an open form to answer."""
    scripted: ScriptedAnswer | None = None
    """An answer to an open form of `task_id`, or of the conversation `context_id`."""


@dataclass(frozen=True, slots=True)
class _Surface:
    """The output of runs and the dialogue for forms; without a person at the keyboard, `prompter` is None."""

    output: Output
    console: Console | None
    prompter: Prompter | None
    url: str | None = None
    typed: bool = False


@dataclass(slots=True)
class _Session:
    """The current conversation, and earlier ones that were left with an open form, the latest last."""

    conversation: ChatConversation
    set_aside: list[ChatConversation] = field(default_factory=list)

    def start_new_conversation(self) -> None:
        if self.conversation.forms:
            self.set_aside.append(self.conversation)
        self.conversation = self.conversation.new_conversation()

    def return_to_open_form(self) -> bool:
        """Switch to a conversation with an open form; False if there is none."""
        if not self.conversation.forms and self.set_aside:
            self.conversation = self.set_aside.pop()
        return bool(self.conversation.forms)


def chat(options: ChatOptions, settings: Settings) -> int:
    """Return the exit code: 0 with an answer, 1 without one or after a failed workflow, 2 for wrong settings, 3 when
    input is needed, 4 with a truncated answer, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # replaced streams may not have it
    try:
        with ExitStack() as stack:
            stack.enter_context(_exit_on_sigterm())
            console = terminal_console(settings.environ)
            if console is not None and options.url is None:
                stack.enter_context(_log_to_file(settings.data_dir))
            background = stack.enter_context(BackgroundLoop())
            supervisor = _supervisor(options, settings, background, console)
            return _chat(options, settings, supervisor, background, console)
    except SupervisorError as error:
        _print_error(error)
        return MISCONFIGURED if error.misconfigured else NOT_ANSWERED
    except NoAnswerError as error:
        _print_error(error)
        return MISCONFIGURED
    except BrokenPipeError:
        # The reader closed the pipe; the rest of the buffer must not be flushed when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_ANSWERED


def _chat(
    options: ChatOptions,
    settings: Settings,
    supervisor: Supervisor,
    background: BackgroundLoop,
    console: Console | None,
) -> int:
    interactive = console is not None and not options.as_json and options.scripted is None and sys.stdin.isatty()
    surface = _Surface(
        output_for(console, as_json=options.as_json, with_forms=not interactive),
        console,
        TerminalPrompter(console, settings.environ) if console is not None and interactive else None,
        options.url,
        typed=sys.stdin.isatty(),
    )
    task_id = options.task_id
    if task_id is None and options.scripted is not None and options.context_id is not None:
        task_id = background.submit(supervisor.find_waiting_task(options.context_id)).result()
    if task_id is None:
        conversation = ChatConversation(supervisor, background, options.context_id)
    else:
        conversation = ChatConversation.waiting(supervisor, background, task_id)
    if options.scripted is not None:
        form = options.scripted.select_form(conversation.forms)
        answer = options.scripted.answer_to(form)
        with echo_off():
            view = conversation.answer(form, answer, surface.output, typed=False)
        return _leave(conversation, view, surface)
    if options.question is not None:
        return _ask_once(options.question, conversation, surface)
    if task_id is not None:
        return _answer_once(conversation, surface)
    return _converse(supervisor, conversation, InfoCommands(supervisor, background), surface, settings)


def terminal_console(environ: Mapping[str, str]) -> Console | None:
    """The console of standard output, or None if it is not a terminal with cursor control."""
    console = _console(environ)
    return console if console.is_terminal and not console.is_dumb_terminal else None


def _console(environ: Mapping[str, str], *, stderr: bool = False) -> Console:
    # Without these variables rich asks the terminal for its size; the variables do not follow a resize.
    variables = {name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"}}
    return Console(highlight=False, stderr=stderr, _environ=variables)


def output_for(console: Console | None, *, as_json: bool = False, with_forms: bool = True) -> Output:
    if as_json:
        return JsonOutput(sys.stdout, sys.stderr)
    return PlainOutput(sys.stdout, sys.stderr) if console is None else Screen(console, with_forms=with_forms)


def _supervisor(
    options: ChatOptions, settings: Settings, background: BackgroundLoop, console: Console | None
) -> Supervisor:
    if options.url is not None:
        return background.enter_context(connected(options.url, SupervisorAuth(settings, options.url)))
    from ai_platform_engineering.terminal.local import local_supervisor  # noqa: PLC0415

    if console is None or options.as_json:
        return background.enter_context(local_supervisor(settings))
    with console.status("Starting the supervisor...", spinner_style="cyan"):
        return background.enter_context(local_supervisor(settings))


def _ask_once(question: str, conversation: ChatConversation, surface: _Surface) -> int:
    with echo_off():
        conversation.ask(question, surface.output)
    return _answer_once(conversation, surface, forms_shown=True)


def _answer_once(conversation: ChatConversation, surface: _Surface, *, forms_shown: bool = False) -> int:
    """Ask for the answers to the open forms, or print the forms if there is no person to ask."""
    if surface.prompter is not None:
        left_open = answer_forms(conversation, surface.output, surface.prompter)
        if left_open is not None and left_open.interrupted:
            _print_answer_commands(conversation, surface)
            return INTERRUPTED
    elif not forms_shown:
        conversation.show_forms(surface.output)
    return _leave(conversation, conversation.view, surface)


def _leave(conversation: ChatConversation, view: View, surface: _Surface) -> int:
    _print_answer_commands(conversation, surface)
    return INTERRUPTED if conversation.interrupted else _exit_code(view)


def _print_answer_commands(conversation: ChatConversation, surface: _Surface) -> None:
    """Print the commands that answer the open forms later, from any terminal."""
    if conversation.waiting_task is not None:
        for line in command_lines(conversation.forms, conversation.waiting_task.task_id, surface.url):
            print(clean(line), file=sys.stderr)  # noqa: T201


def _exit_code(view: View) -> int:
    match view.ending:
        case FinalResult(limit=limit) if not _is_failed_workflow(view):
            return ANSWERED if cut_reason_of(limit) is None else CUT_OFF
        case InputRequired():
            return INPUT_NEEDED
        case _:
            return NOT_ANSWERED


def _is_failed_workflow(view: View) -> bool:
    """Whether the run was a workflow with a failed step; such a run also ends with a final result."""
    finished = (entry.call for entry in view.transcript if isinstance(entry, CallFinished))
    started = any(isinstance(call, ToolCall) and call.name == WORKFLOW_TOOL and call.state == "ok" for call in finished)
    return started and view.plan is not None and any(step.status == "failed" for step in view.plan.steps)


def _converse(
    supervisor: Supervisor,
    conversation: ChatConversation,
    info_commands: InfoCommands,
    surface: _Surface,
    settings: Settings,
) -> int:
    """Run the lines of standard input until it ends. With input from a pipe, the exit code is the worst of all."""
    console = surface.console or _console(settings.environ, stderr=True)
    typed = surface.typed
    prompt = f"{symbols_for(console.encoding).prompt} " if typed else ""
    if typed:
        console.print(
            Text(f"{one_line(supervisor.card.name)}: ask it something. /help lists the commands.\n", style="dim")
        )
    worst = last = ANSWERED
    session = _Session(conversation)
    with question_history(settings.data_dir / "chat_history") if typed else ExitStack():
        while (line := read_question(prompt)) is not None:
            match line.lower():
                case "":
                    continue
                case "/quit" | "/exit":
                    break
                case "/new":
                    worst = max(worst, last)
                    last = ANSWERED
                    session.start_new_conversation()
                    console.print(Text("A new conversation.\n", style="dim"))
                case "/answer" if not session.return_to_open_form():
                    console.print(Text("No form is open.\n", style="dim"))
                case "/answer" if surface.prompter is None:
                    print(BY_MESSAGE, file=sys.stderr)  # noqa: T201
                case command if command != "/answer" and info_commands.handles(line):
                    info_commands.show(line, console)
                case command:
                    question = None if command == "/answer" else line
                    if question is not None and surface.prompter is not None and session.conversation.forms:
                        # The form was left open: a question must not be taken as its answer.
                        session.start_new_conversation()
                        console.print(Text(f"{NEW_CONVERSATION}\n", style="dim"))
                    # A run that needed input is replaced by the result of its answer.
                    worst = worst if last == INPUT_NEEDED else max(worst, last)
                    last = _run_line(question, session.conversation, surface, console)
    for each in (*session.set_aside, session.conversation):
        _print_answer_commands(each, surface)
    return ANSWERED if typed else max(worst, last)


def _run_line(line: str | None, conversation: ChatConversation, surface: _Surface, console: Console) -> int:
    """Send `line`, or without one answer the open forms.

    A rejected request does not end the chat, unless wrong settings would make every request fail.
    """
    try:
        if line is not None:
            with echo_off():
                conversation.ask(line, surface.output, typed=surface.typed, to_conversation=True)
        if surface.prompter is not None and answer_forms(conversation, surface.output, surface.prompter) is not None:
            console.print(Text(f"{STAYS_OPEN}\n", style="dim"))
        elif surface.prompter is None and conversation.waiting_task is not None:
            print(BY_MESSAGE, file=sys.stderr)  # noqa: T201
        return _exit_code(conversation.view)
    except SupervisorError as error:
        if error.misconfigured:
            raise
        _print_error(error)
        return NOT_ANSWERED


def _print_error(error: Exception) -> None:
    print(f"platform-engineer: {clean(str(error))}", file=sys.stderr)  # noqa: T201


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exit that restores the terminal and stops the agents."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _log_to_file(data_dir: Path) -> Iterator[None]:
    """Write the log of a supervisor in this process to a file, so that it does not disturb the drawing."""
    handlers = [one for one in logging.getLogger().handlers if isinstance(one, logging.StreamHandler)]
    try:
        path = data_dir / "chat.log"
        create_private_file(path)
        log = path.open("a", encoding="utf-8")
    except OSError:
        yield
        return
    with log:
        before = [(handler, handler.setStream(log)) for handler in handlers]
        try:
            yield
        finally:
            for handler, stream in before:
                handler.setStream(stream)
