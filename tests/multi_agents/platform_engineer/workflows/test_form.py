from __future__ import annotations

from ai_platform_engineering.multi_agents.platform_engineer.workflows.tool import workflow_form
from tests.multi_agents.platform_engineer.workflows.examples import LAUNCH


def test_the_form_is_made_from_the_inputs() -> None:
    form = workflow_form(LAUNCH, {})
    assert (form.title, form.description) == ("Launch Service", "Launches a service.")
    assert [(field.field_name, field.field_type, field.required) for field in form.fields] == [
        ("service", "text", True),
        ("replicas", "number", True),
        ("ticket", "boolean", True),
        ("note", "text", False),
    ]
    assert [field.value for field in form.fields] == [None] * 4


def test_only_proposals_that_fit_are_taken() -> None:
    form = workflow_form(LAUNCH, {"service": "Not This", "replicas": 3.0, "ticket": "perhaps", "note": " ", "other": 1})
    values = {field.field_name: field.value for field in form.fields}
    assert values == {"service": None, "replicas": 3, "ticket": None, "note": None}
    assert isinstance(values["replicas"], int)
    assert workflow_form(LAUNCH, {"service": "demo"}).fields[0].value == "demo"
