"""Hypothesis strategies for whole runs: sequences of events that keep every rule a run has to keep."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FieldRules,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)

EXACT_INTEGER = 2**53

agents = st.sampled_from(["argocd", "jira", "github", "aws_cost", "netutils"])
tools = st.sampled_from(["version_service__version", "search", "create-repo", "list applications"])
skills = st.none() | st.sampled_from(["incident-triage", "release-notes"])
texts = st.text(max_size=12)
ids = st.text(min_size=1, max_size=6)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-EXACT_INTEGER, EXACT_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)

plan_steps = st.builds(
    PlanStep,
    id=ids,
    title=texts,
    status=st.sampled_from(["pending", "in_progress", "completed", "failed"]),
    order=st.integers(0, 20),
    agent=st.none() | agents,
)
plans = st.builds(PlanUpdated, steps=st.lists(plan_steps, max_size=3).map(tuple), title=texts)

bounds = st.none() | st.integers(-EXACT_INTEGER, EXACT_INTEGER) | st.floats(allow_nan=False, allow_infinity=False)
lengths = st.none() | st.integers(0, EXACT_INTEGER)
# Rules that rule nothing are no rules: they come back as None.
field_rules = st.builds(
    FieldRules,
    minimum=bounds,
    maximum=bounds,
    integer=st.booleans(),
    min_length=lengths,
    max_length=lengths,
    pattern=st.none() | texts,
).filter(lambda rules: rules != FieldRules())
form_fields = st.builds(
    FormField,
    field_name=texts,
    field_type=st.sampled_from(["text", "multiline", "number", "boolean", "select", "multiselect", "url", "email"]),
    field_description=texts,
    field_values=st.none() | st.lists(texts, max_size=3).map(tuple),
    default_value=json_values,
    required=st.booleans(),
    value=json_values,
    rules=st.none() | field_rules,
    error=st.none() | texts,
)
forms = st.builds(
    Form,
    form_id=ids,
    title=texts,
    fields=st.lists(form_fields, max_size=2).map(tuple),
    description=texts,
    response=texts,
    agent=st.none() | agents,
    action_requests=st.lists(st.dictionaries(texts, json_values, max_size=2), max_size=2).map(tuple),
)
questions = st.builds(
    InputRequired, forms=st.lists(forms, min_size=1, max_size=3, unique_by=lambda form: form.form_id).map(tuple)
)


@st.composite
def runs(draw: st.DrawFn, agent: str = SUPERVISOR) -> list[Event]:
    """One run of `agent`: interleaved calls and messages, plans, and exactly one ending, last."""
    run = _Run(draw, agent)
    for _ in range(draw(st.integers(0, 12))):
        draw(st.sampled_from(run.moves()))()
    draw(st.sampled_from([run.answer, run.ask, run.fail, run.cancel]))()
    return run.events


class _Run:
    def __init__(self, draw: st.DrawFn, agent: str) -> None:
        self.draw = draw
        self.agent = agent
        self.events: list[Event] = []
        self.calls: list[AgentStarted | ToolStarted] = []
        self.messages: list[TextDelta] = []
        self.made = 0

    def moves(self) -> list[Any]:
        moves = [self.plan, self.start_agent, self.start_tool, self.open_message, self.empty_message]
        if self.calls:
            moves.append(self.end_call)
        if self.messages:
            moves += [self.write, self.write, self.end_message]
        return moves

    def new_id(self) -> str:
        self.made += 1
        return f"{self.draw(ids)}{self.made}"

    def parent(self) -> str | None:
        delegations = [call.call_id for call in self.calls if isinstance(call, AgentStarted)]
        return self.draw(st.sampled_from([None, *delegations]))

    def plan(self) -> None:
        self.events.append(self.draw(plans))

    def start_agent(self) -> None:
        start = AgentStarted(self.draw(agents), self.new_id(), None, self.draw(st.none() | ids))
        self.calls.append(start)
        self.events.append(start)

    def start_tool(self) -> None:
        who = self.draw(agents | st.just(self.agent))
        step, skill = self.draw(st.none() | ids), self.draw(skills)
        start = ToolStarted(who, self.draw(tools), self.new_id(), self.parent(), step, skill)
        self.calls.append(start)
        self.events.append(start)

    def end_call(self) -> None:
        start = self.draw(st.sampled_from(self.calls))
        self.calls.remove(start)
        ok, reason = self.draw(st.sampled_from([(True, None), (False, None), (False, ""), (False, "no such app")]))
        match start:
            case AgentStarted():
                self.events.append(
                    AgentFinished(start.agent, start.call_id, ok, reason, start.parent_call_id, start.plan_step_id)
                )
            case ToolStarted():
                self.events.append(
                    ToolFinished(
                        start.agent,
                        start.tool,
                        start.call_id,
                        ok,
                        reason,
                        start.parent_call_id,
                        start.plan_step_id,
                        start.skill,
                    )
                )

    def open_message(self) -> None:
        who = self.draw(agents | st.just(self.agent))
        first = TextDelta(who, self.new_id(), self.draw(texts), self.parent(), self.draw(st.none() | ids))
        self.messages.append(first)
        self.events.append(first)

    def write(self) -> None:
        first = self.draw(st.sampled_from(self.messages))
        self.events.append(TextDelta(first.agent, first.message_id, self.draw(texts), first.parent_call_id))

    def end_message(self) -> None:
        first = self.draw(st.sampled_from(self.messages))
        self.messages.remove(first)
        self.events.append(MessageEnded(first.agent, first.message_id, first.parent_call_id))

    def empty_message(self) -> None:
        self.events.append(MessageEnded(self.agent, self.new_id(), self.parent()))

    def close(self) -> None:
        while self.calls:
            self.end_call()
        while self.messages:
            self.end_message()

    def answer(self) -> None:
        self.close()
        message_id = self.new_id()
        pieces = self.draw(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4))
        self.events += [TextDelta(self.agent, message_id, piece) for piece in pieces]
        self.events.append(MessageEnded(self.agent, message_id))
        limit = self.draw(st.none() | st.just("recursion_limit"))
        self.events.append(FinalResult("".join(pieces), message_id, limit))

    def ask(self) -> None:
        while self.messages:
            self.end_message()
        self.events.append(self.draw(questions))

    def fail(self) -> None:
        self.close()
        self.events.append(Failed(self.draw(ids), self.draw(texts), self.draw(st.none() | texts)))

    def cancel(self) -> None:
        self.close()
        self.events.append(Canceled(self.draw(ids), self.draw(texts)))
