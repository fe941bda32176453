"""A workflow with everything in it, for tests."""

from __future__ import annotations

from typing import Any

from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Workflow

LAUNCH = Workflow.model_validate(
    {
        "name": "launch_service",
        "title": "Launch Service",
        "description": "Launches a service.",
        "keywords": ["launch"],
        "inputs": [
            {"name": "service", "pattern": "[a-z-]+"},
            {"name": "replicas", "type": "number", "integer": True, "minimum": 1, "default": 1},
            {"name": "ticket", "type": "boolean", "default": True},
            {"name": "note", "required": False},
        ],
        "steps": [
            {
                "name": "build",
                "title": "Build it",
                "agent": "builder",
                "tool": "build",
                "arguments": {
                    "name": "{{ inputs.service }}",
                    "replicas": "{{ inputs.replicas }}",
                    "note": "{{ inputs.note }}",
                },
                "outputs": {"url": "links.0.url", "count": "count"},
            },
            {
                "name": "ticket",
                "title": "Open a ticket",
                "agent": "teller",
                "instruction": "Create a ticket about {{ steps.build.url }}.",
                "outputs": {"key": r"\b[A-Z]+-\d+\b"},
                "when": {"value": "{{ inputs.ticket }}", "equals": True},
            },
            {
                "name": "announce",
                "title": "Announce it",
                "agent": "teller",
                "instruction": "Announce {{ steps.ticket.key }} ({{ steps.build.count }}).",
                "when": {"value": "{{ steps.ticket.key }}", "is_set": True},
            },
        ],
    }
)
BUILT = '{"links": [{"url": "https://x.test/1"}], "count": 3}'
VALUES: dict[str, Any] = {"service": "demo", "replicas": 2, "ticket": True}
