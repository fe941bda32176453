"""Records in the audit record that the policy has changed since the last start."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Final

from ai_platform_engineering.audit.log import Audit
from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.private_files import create_private_file

logger = logging.getLogger(__name__)

_KNOWN_POLICY: Final = "policy.digest"
"""The file with the digest of the policy at the last start."""


def record_policy_change(settings: Settings, audit: Audit) -> None:
    """Compare the policy with that of the last start. Without a file, the policy has no rules."""
    path, known = settings.policy_file, settings.data_dir / _KNOWN_POLICY
    digest = _digest(path)
    try:
        before = known.read_text(encoding="ascii") if known.exists() else _digest(None)
        if digest == before:
            return
        create_private_file(known)
        known.write_text(digest, encoding="ascii")
    except (OSError, ValueError) as error:
        logger.warning("The digest of the policy cannot be stored in %s: %s", known, error)
    audit.record(AuditFact("policy_changed", target=str(path or ""), arguments=digest))


def _digest(path: Path | None) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes() if path is not None else b'').hexdigest()}"
