"""What became of somebody's wish that a run stops."""

from __future__ import annotations

from typing import Literal

StopOutcome = Literal["stopping", "already_over", "not_stopped"]
"""`not_stopped` where the supervisor did not confirm it: the run goes on."""
