"""The supervisor of this process, for code that is not given one: the status of the skills API."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent

_lock = threading.Lock()
_registered: weakref.ref[PlatformEngineerDeepAgent] | None = None


def set_mas_instance(mas: PlatformEngineerDeepAgent | None) -> None:
    """Register the supervisor; the last one counts. It is not kept alive by this. None removes it."""
    global _registered  # noqa: PLW0603 - a registry of the process
    with _lock:
        _registered = None if mas is None else weakref.ref(mas)


def get_mas_instance() -> PlatformEngineerDeepAgent | None:
    """The supervisor that was registered last; None before that, and after it is gone."""
    with _lock:
        return None if _registered is None else _registered()
