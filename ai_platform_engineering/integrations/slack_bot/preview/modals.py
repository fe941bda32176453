"""The open modals: for each person a stack of at most three; the last one is visible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Modal:
    id: str
    person: str
    view: Mapping[str, Any]
    errors: Mapping[str, str] = field(default_factory=dict)
    """Validation errors by block id."""

    @property
    def title(self) -> str:
        return str(self.view.get("title", {}).get("text", ""))


@dataclass(slots=True)
class Modals:
    stacks: dict[str, tuple[Modal, ...]] = field(default_factory=dict)

    def top(self, person: str) -> Modal | None:
        return (self.stacks.get(person) or (None,))[-1]

    def push(self, modal: Modal, *, alone: bool = False) -> None:
        below = () if alone else self.stacks.get(modal.person, ())
        self.stacks[modal.person] = (*below, modal)

    def find(self, name: str) -> Modal | None:
        """Find a modal by its view id or by its external id."""
        modals = (modal for stack in self.stacks.values() for modal in stack)
        return next((modal for modal in modals if name and name in (modal.id, modal.view.get("external_id"))), None)

    def update(self, name: str, view: Mapping[str, Any]) -> None:
        if modal := self.find(name):
            self._replace(modal, replace(modal, view=view, errors={}))

    def refuse(self, name: str, errors: Mapping[str, str]) -> None:
        """Reject a submission: the modal stays open and shows `errors`."""
        if modal := self.find(name):
            self._replace(modal, replace(modal, errors=errors))

    def pop(self, person: str) -> None:
        self.stacks[person] = self.stacks.get(person, ())[:-1]

    def clear(self, person: str) -> None:
        self.stacks.pop(person, None)

    def _replace(self, old: Modal, new: Modal) -> None:
        self.stacks[old.person] = tuple(new if modal is old else modal for modal in self.stacks[old.person])
