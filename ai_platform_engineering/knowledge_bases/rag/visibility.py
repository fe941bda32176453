"""Which datasources the caller of a tool may see. The policy of the caller is in a context variable.

The supervisor sets it for a knowledge base in its process. The server of a knowledge base sets it from its own policy
file, for the user that the supervisor states in a signed header.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ai_platform_engineering.policy.decisions import NO_POLICY, PrincipalPolicy

AUDIENCE: Final = "knowledge-base"
"""Of the tokens that state the user of a call."""

_KIND: Final = "knowledge"
_POLICY: ContextVar[PrincipalPolicy] = ContextVar("policy of the caller", default=NO_POLICY)


@contextmanager
def seen_by(policy: PrincipalPolicy) -> Iterator[None]:
    """Calls inside are those of a caller with this policy."""
    token = _POLICY.set(policy)
    try:
        yield
    finally:
        _POLICY.reset(token)


def is_visible(datasource: str) -> bool:
    return _POLICY.get().sees(_KIND, datasource)


def hides_datasources() -> bool:
    """Whether there may be datasources that the caller may not see."""
    return _POLICY.get().restricts(_KIND)
