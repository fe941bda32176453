"""`platform-engineer chat`: one question, or a conversation, with a supervisor here or elsewhere."""

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
from ai_platform_engineering.limits import cut_reason_of
from ai_platform_engineering.runs.plan import WORKFLOW_TOOL
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.answering import answer_forms
from ai_platform_engineering.terminal.background import Background
from ai_platform_engineering.terminal.conversation import Conversation
from ai_platform_engineering.terminal.dialogue import Person
from ai_platform_engineering.terminal.lists import Lists
from ai_platform_engineering.terminal.output import JsonOutput, Output, PlainOutput
from ai_platform_engineering.terminal.person import AtKeyboard
from ai_platform_engineering.terminal.prompt import history_in, read_question, silent_keys
from ai_platform_engineering.terminal.rendering import marks_for
from ai_platform_engineering.terminal.screen import Screen
from ai_platform_engineering.terminal.scripted import NoAnswerError, Scripted
from ai_platform_engineering.terminal.view import Finished, Tool, View
from ai_platform_engineering.text.form_words import BY_MESSAGE, command_lines
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import Supervisor, connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.access_tokens import SupervisorAuth
from ai_platform_engineering.utils.private_files import create_private_file

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
    """A task that waits for an answer, to go on with."""
    scripted: Scripted | None = None
    """An answer to what waits in the task, or in the conversation where no task is named."""


@dataclass(frozen=True, slots=True)
class _Surface:
    """Where runs are shown, and who fills in forms: nobody where no person sits there."""

    output: Output
    console: Console | None
    person: Person | None
    url: str | None = None
    typed: bool = False


@dataclass(slots=True)
class _Session:
    """The conversation that questions go to, and those whose forms were put aside, the latest last."""

    conversation: Conversation
    shelved: list[Conversation] = field(default_factory=list)

    def begin_anew(self) -> None:
        if self.conversation.forms:
            self.shelved.append(self.conversation)
        self.conversation = self.conversation.anew()

    def bring_back(self) -> bool:
        """Go to a conversation with an open form; False where there is none."""
        if not self.conversation.forms and self.shelved:
            self.conversation = self.shelved.pop()
        return bool(self.conversation.forms)


def chat(options: ChatOptions, settings: Settings) -> int:
    """The exit code: 0 with an answer, 1 without or after a workflow that failed, 2 when something is set wrong, 3 when
    input is needed, 4 with an answer that was cut off, 130 when it was interrupted."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # real streams can, stand-ins need not
    try:
        with ExitStack() as stack:
            stack.enter_context(_orderly_end())
            console = terminal_console(settings.environ)
            if console is not None and options.url is None:
                stack.enter_context(_log_beside(settings.data_dir))
            background = stack.enter_context(Background())
            supervisor = _supervisor(options, settings, background, console)
            return _chat(options, settings, supervisor, background, console)
    except SupervisorError as error:
        _complain(error)
        return MISCONFIGURED if error.misconfigured else NOT_ANSWERED
    except NoAnswerError as error:
        _complain(error)
        return MISCONFIGURED
    except BrokenPipeError:
        # The reader has gone; what is still in the buffer must not be written when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_ANSWERED


def _chat(
    options: ChatOptions, settings: Settings, supervisor: Supervisor, background: Background, console: Console | None
) -> int:
    asks = console is not None and not options.as_json and options.scripted is None and sys.stdin.isatty()
    surface = _Surface(
        output_for(console, as_json=options.as_json, with_forms=not asks),
        console,
        AtKeyboard(console, settings.environ) if console is not None and asks else None,
        options.url,
        typed=sys.stdin.isatty(),
    )
    task_id = options.task_id
    if task_id is None and options.scripted is not None and options.context_id is not None:
        task_id = background.start(supervisor.find_parked(options.context_id)).result()
    if task_id is None:
        conversation = Conversation(supervisor, background, options.context_id)
    else:
        conversation = Conversation.waiting(supervisor, background, task_id)
    if options.scripted is not None:
        form = options.scripted.form_of(conversation.forms)
        answer = options.scripted.answer_to(form)
        with silent_keys():
            view = conversation.answer(form, answer, surface.output, typed=False)
        return _leave(conversation, view, surface)
    if options.question is not None:
        return _ask_once(options.question, conversation, surface)
    if task_id is not None:
        return _answer_once(conversation, surface)
    return _converse(supervisor, conversation, Lists(supervisor, background), surface, settings)


def terminal_console(environ: Mapping[str, str]) -> Console | None:
    """The terminal, if standard output is one that can be drawn on."""
    console = _console(environ)
    return console if console.is_terminal and not console.is_dumb_terminal else None


def _console(environ: Mapping[str, str], *, stderr: bool = False) -> Console:
    # The size is asked of the terminal itself: the variables for it are not kept up to date when it changes.
    known = {name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"}}
    return Console(highlight=False, stderr=stderr, _environ=known)


def output_for(console: Console | None, *, as_json: bool = False, with_forms: bool = True) -> Output:
    if as_json:
        return JsonOutput(sys.stdout, sys.stderr)
    return PlainOutput(sys.stdout, sys.stderr) if console is None else Screen(console, with_forms=with_forms)


def _supervisor(
    options: ChatOptions, settings: Settings, background: Background, console: Console | None
) -> Supervisor:
    if options.url is not None:
        return background.hold(connected(options.url, SupervisorAuth(settings)))
    from ai_platform_engineering.terminal.local import running_here  # noqa: PLC0415

    if console is None or options.as_json:
        return background.hold(running_here(settings))
    with console.status("Starting the supervisor...", spinner_style="cyan"):
        return background.hold(running_here(settings))


def _ask_once(question: str, conversation: Conversation, surface: _Surface) -> int:
    with silent_keys():
        conversation.ask(question, surface.output)
    return _answer_once(conversation, surface, told=True)


def _answer_once(conversation: Conversation, surface: _Surface, *, told: bool = False) -> int:
    """Have the open forms filled in where a person is there to do it; `told` where they have been shown."""
    if surface.person is not None:
        put_off = answer_forms(conversation, surface.output, surface.person)
        if put_off is not None and put_off.interrupted:
            _tell_commands(conversation, surface)
            return INTERRUPTED
    elif not told:
        conversation.show_forms(surface.output)
    return _leave(conversation, conversation.view, surface)


def _leave(conversation: Conversation, view: View, surface: _Surface) -> int:
    _tell_commands(conversation, surface)
    return INTERRUPTED if conversation.interrupted else _exit_code(view)


def _tell_commands(conversation: Conversation, surface: _Surface) -> None:
    """What waits can be answered later, from anywhere."""
    if conversation.parked is not None:
        for line in command_lines(conversation.forms, conversation.parked.task_id, surface.url):
            print(line, file=sys.stderr)  # noqa: T201


def _exit_code(view: View) -> int:
    match view.ending:
        case FinalResult(limit=limit) if not _is_failed_workflow(view):
            return ANSWERED if cut_reason_of(limit) is None else CUT_OFF
        case InputRequired():
            return INPUT_NEEDED
        case _:
            return NOT_ANSWERED


def _is_failed_workflow(view: View) -> bool:
    """Whether the run was a workflow that was stopped: it ends with an answer too."""
    finished = (fact.call for fact in view.facts if isinstance(fact, Finished))
    started = any(isinstance(call, Tool) and call.name == WORKFLOW_TOOL and call.state == "ok" for call in finished)
    return started and view.plan is not None and any(step.status == "failed" for step in view.plan.steps)


def _converse(
    supervisor: Supervisor, conversation: Conversation, lists: Lists, surface: _Surface, settings: Settings
) -> int:
    """Questions as they are typed. Read from a pipe, the exit code tells whether all were answered."""
    shown = surface.console or _console(settings.environ, stderr=True)
    typed = surface.typed
    sign = f"{marks_for(shown.encoding).prompt} " if typed else ""
    if typed:
        shown.print(Text(f"{supervisor.card.name}: ask it something. /help lists the commands.\n", style="dim"))
    worst = last = ANSWERED
    session = _Session(conversation)
    with history_in(settings.data_dir / "chat_history") if typed else ExitStack():
        while (line := read_question(sign)) is not None:
            match line.lower():
                case "":
                    continue
                case "/quit" | "/exit":
                    break
                case "/new":
                    worst = max(worst, last)
                    last = ANSWERED
                    session.begin_anew()
                    shown.print(Text("A new conversation.\n", style="dim"))
                case "/answer" if not session.bring_back():
                    shown.print(Text("No form is open.\n", style="dim"))
                case "/answer" if surface.person is None:
                    print(BY_MESSAGE, file=sys.stderr)  # noqa: T201
                case command if command != "/answer" and lists.takes(line):
                    lists.show(line, shown)
                case command:
                    question = None if command == "/answer" else line
                    if question is not None and surface.person is not None and session.conversation.forms:
                        # The form was put aside: a question is never taken as its answer.
                        session.begin_anew()
                        shown.print(Text(f"{NEW_CONVERSATION}\n", style="dim"))
                    # What needed input and has got it counts as what became of it.
                    worst = worst if last == INPUT_NEEDED else max(worst, last)
                    last = _say_next(question, session.conversation, surface, shown)
    for left_open in (*session.shelved, session.conversation):
        _tell_commands(left_open, surface)
    return ANSWERED if typed else max(worst, last)


def _say_next(line: str | None, conversation: Conversation, surface: _Surface, shown: Console) -> int:
    """Ask, or go on with the forms that are open where there is nothing to ask.

    A question that is refused does not end the conversation, unless all others would be too.
    """
    try:
        if line is not None:
            with silent_keys():
                conversation.ask(line, surface.output, typed=surface.typed, to_conversation=True)
        if surface.person is not None and answer_forms(conversation, surface.output, surface.person) is not None:
            shown.print(Text(f"{STAYS_OPEN}\n", style="dim"))
        elif surface.person is None and conversation.parked is not None:
            print(BY_MESSAGE, file=sys.stderr)  # noqa: T201
        return _exit_code(conversation.view)
    except SupervisorError as error:
        if error.misconfigured:
            raise
        _complain(error)
        return NOT_ANSWERED


def _complain(error: Exception) -> None:
    print(f"platform-engineer: {error}", file=sys.stderr)  # noqa: T201


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Asked to end, it leaves the terminal as it was and its agents stopped."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _log_beside(data_dir: Path) -> Iterator[None]:
    """The log of a supervisor in this process goes to a file, not into the middle of what is drawn."""
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
