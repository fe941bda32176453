"""Folders of skills, the same every time."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

_ACTIONS: Final = (
    *("audit", "back up", "clean up", "compare", "debug", "deploy", "drain", "escalate", "estimate", "export"),
    *("inspect", "migrate", "monitor", "onboard", "patch", "promote", "provision", "renew", "restart", "restore"),
    *("review", "roll back", "rotate", "scale", "summarise", "sync", "trace", "triage", "upgrade", "verify"),
)
_THINGS: Final = (
    *("access request", "alert", "api gateway", "backup", "bucket", "build cache", "canary", "certificate", "cluster"),
    *("config map", "cost report", "dashboard", "database", "deployment", "dns record", "feature flag", "helm chart"),
    *("image registry", "incident", "ingress", "job queue", "load balancer", "log pipeline", "namespace", "node pool"),
    *("on-call rota", "persistent volume", "pipeline", "pull request", "quota", "release", "repository", "runbook"),
    *("secret", "service account", "service mesh", "terraform state", "ticket", "vault policy", "webhook"),
)
_TEAMS: Final = (
    "billing",
    "checkout",
    "data",
    "identity",
    "mobile",
    "payments",
    "platform",
    "search",
    "storage",
    "web",
)
_STEPS: Final = 20


def write_folders(directory: Path, count: int) -> None:
    """As many skills as a large platform team might have: about 150 characters of description, 2 KB of steps."""
    random = Random(count)  # noqa: S311 - the same every time
    for number in range(count):
        action, thing, team = (random.choice(words) for words in (_ACTIONS, _THINGS, _TEAMS))
        folder = directory / f"{action}-{thing}-{number}".replace(" ", "-")
        folder.mkdir(parents=True)
        symptoms = " or ".join(random.sample(_THINGS, 3))
        steps = "\n".join(
            f"{step}. {random.choice(_ACTIONS).capitalize()} the {random.choice(_THINGS)} of $ARGUMENTS and report it."
            for step in range(1, _STEPS + 1)
        )
        (folder / "SKILL.md").write_text(
            f"---\nname: {folder.name}\n"
            f"description: {action.capitalize()} the {thing} of a service of {team}. Use it when someone reports a "
            f"problem with a {symptoms} and asks what to do.\n---\n\n# {action.capitalize()} a {thing}\n\n{steps}\n",
            encoding="utf-8",
        )
