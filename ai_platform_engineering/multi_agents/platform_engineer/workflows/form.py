"""The form of a workflow: made from its declared inputs, and filled in only with proposals that fit them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ai_platform_engineering.events import SUPERVISOR, Form, FormField
from ai_platform_engineering.forms.fitting import Misfit, fitted, is_blank
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Input, Workflow


def workflow_form(workflow: Workflow, proposed: Mapping[str, Any]) -> Form:
    return Form(
        form_id="",
        title=workflow.title,
        description=workflow.description,
        fields=tuple(_field(declared, proposed.get(declared.name)) for declared in workflow.inputs),
        agent=SUPERVISOR,
    )


def _field(declared: Input, proposed: Any) -> FormField:
    field = declared.field()
    value = None if is_blank(proposed) else fitted(field, proposed)
    return field if isinstance(value, Misfit) else replace(field, value=value)
