"""Problems with settings as sentences: which variable, which value, what is allowed."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "********"

_SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|DATABASE_URL")


class SettingsError(ValueError):
    """The environment cannot be used: one sentence per problem, fit to be shown to a person."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def wrong_value(variable: str, value: str, allowed: str) -> str:
    """The sentence for a value that cannot be used."""
    return f"{variable}={_shown(variable, value)} cannot be used: it must be {allowed}."


def _shown(variable: str, value: str) -> str:
    if _SECRET_NAME.search(variable):
        return MASK
    without_credentials = re.sub(r"(?<=//)[^/@\s]*@", f"{MASK}@", value)
    return without_credentials if len(without_credentials) <= 200 else f"{without_credentials[:200]}..."
