"""Asking for a workflow by its name or title and nothing else: `Create GitHub Repo`, `run create-github-repo`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Workflow

_AROUND: Final = re.compile(r"(?:(?:start|run) )?(?:the )?(?:workflow )?(?P<name>.+?)(?: workflow)?")


def named_workflow(text: str, workflows: Iterable[Workflow]) -> Workflow | None:
    """The workflow that `text` names and says nothing beside."""
    said = _plain(text)
    around = _AROUND.fullmatch(said)
    names = (said, around["name"]) if around else (said,)
    candidates = list(workflows)
    return next(
        (
            workflow
            for name in names
            for workflow in candidates
            if name and name in (_plain(workflow.title), _plain(workflow.name))
        ),
        None,
    )


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[-_\s]+", " ", text).strip(" .!?\"'`").casefold().split())
