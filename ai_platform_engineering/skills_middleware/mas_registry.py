"""The registered supervisor of this process, which the status of the skills API reports."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent

_lock = threading.Lock()
_registered: weakref.ref[PlatformEngineerDeepAgent] | None = None


def set_mas_instance(mas: PlatformEngineerDeepAgent | None) -> None:
    """Register a supervisor in place of an earlier one, by weak reference. None removes the registration."""
    global _registered  # noqa: PLW0603 - a registry of the process
    with _lock:
        _registered = None if mas is None else weakref.ref(mas)


def get_mas_instance() -> PlatformEngineerDeepAgent | None:
    """The supervisor that was registered last; None if there was none, or if it has been garbage collected."""
    with _lock:
        return None if _registered is None else _registered()
