"""What a run waits for: the interrupts of its graph as forms, one for each agent that asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.questions import form_of
from ai_platform_engineering.runs.ledger import CallLedger


@dataclass(frozen=True, slots=True)
class _Interrupt:
    """`branch` is the delegation that waits, or None for the run's own agent; `call_id` the call that asks."""

    call_id: str
    branch: str | None
    form: Form


class Questions:
    """The open questions of one run. A form keeps its id until it is answered, and what was typed into it."""

    def __init__(self) -> None:
        self._asked: dict[str, _Interrupt] = {}
        self._open: dict[str, Form] = {}
        self._form_ids: dict[str, str] = {}

    def recall(self, forms: Iterable[Form]) -> None:
        """These were open when the run was last seen."""
        self._open = {form.form_id: form for form in forms}
        self._form_ids |= {interrupt_of(form): form.form_id for form in forms}

    def answered(self, form: Form) -> None:
        """What is asked next in the same place is another form: an answer that comes twice must not answer it."""
        self._open.pop(form.form_id, None)
        interrupt, _, number = form.form_id.partition("-")
        self._form_ids[interrupt] = f"{interrupt}-{int(number or 1) + 1}"

    def note(self, call_id: str, interrupts: Sequence[Mapping[str, Any]], parent: str | None, agent: str) -> None:
        """A task of the graph has ended in interrupts. Those of a delegated graph come again with the delegation."""
        for interrupt in interrupts:
            interrupt_id = str(interrupt["id"])
            if interrupt_id not in self._asked:
                form = form_of(interrupt_id, interrupt["value"], agent)
                self._asked[interrupt_id] = _Interrupt(call_id, parent, self._known(form))

    def forms(self, ledger: CallLedger) -> tuple[Form, ...]:
        """One form for each agent that asks, its first, in the order in which the agents were called."""
        waiting = sorted(
            self._asked.values(),
            key=lambda asked: (ledger.place(asked.branch or asked.call_id), ledger.place(asked.call_id)),
        )
        first: dict[str | None, Form] = {}
        for asked in waiting:
            first.setdefault(asked.branch, asked.form)
        return tuple(first.values())

    def _known(self, form: Form) -> Form:
        form = replace(form, form_id=self._form_ids.get(form.form_id, form.form_id))
        return self._open.get(form.form_id, form)


def interrupt_of(form: Form) -> str:
    """The id of the interrupt that a form of ours stands for."""
    return form.form_id.partition("-")[0]
