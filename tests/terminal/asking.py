"""A supervisor that asks: a real server whose runs wait for forms and approvals, and say what they were answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from a2a.types.a2a_pb2 import AgentSkill, Message
from starlette.applications import Starlette

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    FieldRules,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    PlanStep,
    PlanUpdated,
    StepStatus,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.forms.answers import Dismissed, Submitted, read_answer
from ai_platform_engineering.forms.filling import InvalidForm, fill
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.codec.values import get_value
from ai_platform_engineering.utils.a2a_common.server.a2a_server import (
    a2a_routes,
    agent_card,
    health_routes,
    request_handler,
)
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode, restore
from ai_platform_engineering.utils.serving import listen
from tests.terminal.runs import said
from tests.utils.a2a_common.serving import _answering as answering
from tests.utils.a2a_common.serving import address

REPO = Form(
    "form-repo",
    "Create GitHub Repo",
    (
        FormField("name", field_description="Name of the repository", rules=FieldRules(min_length=3)),
        FormField("visibility", "select", field_values=("public", "private"), default_value="private"),
        FormField("reviewers", "number", required=False, rules=FieldRules(minimum=1, maximum=5, integer=True)),
    ),
    description="A new repository in the acme organisation.",
    response="I need a few details.",
    agent="github",
)
KEY = Form("form-key", "Sign in", (FormField("api_key", field_description="Key of the registry"),), agent="registry")
DELETE = Form(
    "form-delete",
    "Approve delete_application?",
    (
        FormField("decision", "select", field_values=("approve", "reject")),
        FormField("reason", required=False),
        FormField("remember", "boolean", required=False),
    ),
    description="Deletes an application and all that runs for it.",
    agent="argocd",
    action_requests=(
        {
            "agent": "argocd",
            "tool": "delete_application",
            "args": {"application": "payments-api", "cascade": True, "token": "***"},
            "description": "Deletes an application.",
            "remember": {"application": "payments-api"},
        },
    ),
)
SCENARIOS: dict[str, tuple[Form, ...]] = {
    "create a repo": (REPO,),
    "sign in": (KEY,),
    "delete the app": (DELETE,),
    "both": (REPO, DELETE),
    "both approvals": (DELETE, Form("form-other", "Approve sync?", action_requests=({"tool": "sync", "args": {}},))),
}


def plan(status: StepStatus) -> PlanUpdated:
    return PlanUpdated((PlanStep("s1", "Do as asked", status, 0, "github"),), "Work")


@dataclass
class Asker:
    """Parks on the forms of the scenario that the first message names; answers, one at a time, close them.

    An answer by text brings the forms back.
    """

    log: MemoryEventLog
    resumable: bool = False
    open_forms: dict[str, tuple[Form, ...]] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)

    async def execute(self, assignment: Assignment) -> bool:
        task_id, message = assignment.task_id, assignment.request.message
        state = StreamState(task_id, assignment.context_id, trace_id="trace")
        restore(state, [entry.event for entry in await self.log.read(task_id)])
        updates = [*begin(state)]
        for event in self._events(task_id, message, question_of(message)):
            updates += encode(state, event)
        await self.log.append(task_id, updates)
        return bool(self.open_forms[task_id])

    async def cancel(self, task_id: str, auth_token: str | None = None) -> None:
        task = await self.log.task(task_id)
        assert task is not None
        state = StreamState(task_id, task.context_id, trace_id="trace")
        await self.log.append(task_id, encode(state, Canceled()))

    def _events(self, task_id: str, message: Message, text: str) -> Iterator[Event]:
        if task_id not in self.open_forms:
            self.open_forms[task_id] = SCENARIOS[text]
            yield from _begun()
        elif (resume := _resume(message)) is not None:
            self.answers.append(dict(resume))
            self.open_forms[task_id] = _still_open(self.open_forms[task_id], resume)
        if forms := self.open_forms[task_id]:
            yield InputRequired(forms)
        elif isinstance(read_answer(self.answers[-1]), Dismissed):
            yield from _ended("Nothing was done.")
        else:
            yield from _ended(f"Done with `{json.dumps(self.answers[-1])}`")


def _still_open(forms: tuple[Form, ...], resume: Mapping[str, Any]) -> tuple[Form, ...]:
    answered = next(form for form in forms if form.form_id == resume["form_id"])
    others = tuple(form for form in forms if form is not answered)
    answer = read_answer(resume)
    outcome = fill(answered, answer.values) if isinstance(answer, Submitted) else None
    return (outcome.form, *others) if isinstance(outcome, InvalidForm) else others


def _begun() -> Iterator[Event]:
    yield from said("m1", "I'll see to it.")
    yield plan("pending")
    yield AgentStarted("github", "a1", None, "s1")
    yield plan("in_progress")
    yield ToolStarted("github", "look_around", "t1", "a1", "s1")
    yield ToolFinished("github", "look_around", "t1", True, None, "a1", "s1")


def _ended(text: str) -> Iterator[Event]:
    yield ToolStarted("github", "do_it", "t2", "a1", "s1")
    yield ToolFinished("github", "do_it", "t2", True, None, "a1", "s1")
    yield AgentFinished("github", "a1", True, None, None, "s1")
    yield plan("completed")
    yield from said("m2", text)
    yield FinalResult(text, "m2")


def _resume(message: Message) -> Mapping[str, Any] | None:
    for part in message.parts:
        if part.WhichOneof("content") == "data":
            resume = get_value(part.data)["resume"]
            assert isinstance(resume, dict)
            return resume
    return None


@asynccontextmanager
async def asking() -> AsyncIterator[tuple[str, Asker]]:
    """The address of such a supervisor, and what it was answered."""
    settings = load_settings({}, None)
    log = MemoryEventLog()
    asker = Asker(log)
    skill = AgentSkill(id="ask", name="ask", description="Asks for what it needs.", tags=["test"])
    with listen("127.0.0.1", 0) as listener:
        card = agent_card(name="Asker", description="A test.", url=address(listener), version="1", skills=[skill])
        handler = request_handler(asker, log, card, settings)
        routes = [*health_routes(lambda: True, lambda _: []), *a2a_routes(handler, card, settings)]
        try:
            async with answering(Starlette(routes=routes), listener):
                yield address(listener), asker
        finally:
            await handler.aclose()
