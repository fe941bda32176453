"""The open forms of a run: the interrupts of its graph, as one form per agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ai_platform_engineering.call_ledger import CallLedger
from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.questions import form_of


@dataclass(frozen=True, slots=True)
class _AskedForm:
    """The form of an interrupt, with its call. `branch` is the delegation, or None for the run's own agent."""

    call_id: str
    branch: str | None
    form: Form


class Questions:
    """The open forms of one run. A form keeps its id and the entered values until it is answered."""

    def __init__(self) -> None:
        self._asked: dict[str, _AskedForm] = {}
        self._open: dict[str, Form] = {}
        self._form_ids: dict[str, str] = {}

    def restore(self, forms: Iterable[Form]) -> None:
        """Take over the forms that were open when the run last stopped."""
        self._open = {form.form_id: form for form in forms}
        self._form_ids |= {interrupt_of(form): form.form_id for form in forms}

    def answered(self, form: Form) -> None:
        """The next form of the same interrupt gets a new id, so that a repeated answer does not answer it."""
        self._open.pop(form.form_id, None)
        interrupt = interrupt_of(form)
        self._form_ids[interrupt] = f"{interrupt}-{number_of(form) + 1}"

    def add(self, call_id: str, interrupts: Sequence[Mapping[str, Any]], parent: str | None, agent: str) -> None:
        """Add the interrupts of a task. The stream repeats those of a delegated graph with the delegation itself."""
        for interrupt in interrupts:
            interrupt_id = str(interrupt["id"])
            if interrupt_id not in self._asked:
                form = form_of(interrupt_id, interrupt["value"], agent)
                self._asked[interrupt_id] = _AskedForm(call_id, parent, self._known(form))

    def forms(self, ledger: CallLedger) -> tuple[Form, ...]:
        """The first form of each agent that asks, in the order in which the agents were called."""
        waiting = sorted(
            self._asked.values(),
            key=lambda asked: (ledger.position(asked.branch or asked.call_id), ledger.position(asked.call_id)),
        )
        first: dict[str | None, Form] = {}
        for asked in waiting:
            first.setdefault(asked.branch, asked.form)
        return tuple(first.values())

    def _known(self, form: Form) -> Form:
        form = replace(form, form_id=self._form_ids.get(form.form_id, form.form_id))
        return self._open.get(form.form_id, form)


def interrupt_of(form: Form) -> str:
    """The id of the interrupt that one of our forms belongs to."""
    return form.form_id.partition("-")[0]


def number_of(form: Form) -> int:
    """How often the interrupt of the form has asked, this form included."""
    return int(form.form_id.partition("-")[2] or 1)
