"""Delegation statements: the supervisor signs the metadata of a delegation, and the agent's server verifies it.

A statement is the metadata in `FIELDS`; an agent drops unsigned ones. Its signature is one more field, an HMAC-SHA256
over the statement, the message and the time. The secret is derived from the agents' key; without one, from a key file
that the processes of one user share through `DATA_DIR`. The secret is never sent.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import time
from collections.abc import Callable, MutableMapping
from typing import Final

from a2a.types.a2a_pb2 import Message
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.codec.values import get_value
from ai_platform_engineering.utils.key_files import KeyFileError, read_or_create_key
from ai_platform_engineering.utils.keys import Key

logger = logging.getLogger(__name__)

SKILLS: Final = "skills"
PRINCIPAL: Final = "principal"
POLICY: Final = "policy"
ALLOWANCE: Final = "allowance"
APPROVAL: Final = "approval"
TAINT: Final = "taint"
"""It only restricts, so an agent does not drop it if it is unsigned."""
FIELDS: Final = ("delegated", "approvals", APPROVAL, "step", SKILLS, PRINCIPAL, POLICY, ALLOWANCE)
"""Metadata that only a supervisor may send."""
SIGNATURE: Final = "delegation"
MAX_AGE_SECONDS: Final = 300
MAX_AHEAD_SECONDS: Final = 30
"""How far the supervisor's clock may be ahead of the agent's."""

_SIGNED: Final = (*FIELDS, TAINT, "user")
_FORMAT: Final = re.compile(r"v1\.([0-9]{1,12})\.([0-9a-f]{64})")
_KEY_FILE: Final = "delegation.key"
_WAY_OUT: Final = "Set A2A_AGENTS_AUTH_KEY to the same value at the supervisor and at its agents"


class DelegationError(Exception):
    """A statement cannot be signed or verified; the text is the reason."""


class Delegations:
    """Signs or verifies statements with one secret. Logs the first failure."""

    def __init__(self, settings: Settings, key: Key | None, clock: Callable[[], float] = time.time) -> None:
        self._key_file = settings.data_dir / _KEY_FILE
        self._secret = _derived(key.value.encode()) if key is not None else None
        self._clock = clock
        self._warned = False

    def sign(self, message: Message) -> None:
        """Sign the statement of a message. Without a secret it stays unsigned; the agent asks for every approval."""
        try:
            issued_at = int(self._clock())
            message.metadata[SIGNATURE] = f"v1.{issued_at}.{self._mac(message, issued_at)}"
        except DelegationError as error:
            self._warn("Delegations to remote agents are not signed: %s", error)

    def admit(self, message: Message) -> bool:
        """Whether a supervisor delegates the message. Removes a statement that cannot be verified."""
        fields = message.metadata.fields if message.HasField("metadata") else {}
        if not any(name in fields for name in FIELDS):
            drop(fields)
            return False
        try:
            self._check(message)
        except DelegationError as error:
            drop(fields)
            self._warn("A delegation is treated like any other message: %s", error)
            return False
        del fields[SIGNATURE]
        return fields["delegated"].bool_value if "delegated" in fields else False

    def _check(self, message: Message) -> None:
        sent = message.metadata.fields
        match = _FORMAT.fullmatch(sent[SIGNATURE].string_value) if SIGNATURE in sent else None
        if match is None:
            raise DelegationError("it is not signed.")
        issued_at = int(match[1])
        if not hmac.compare_digest(match[2], self._mac(message, issued_at)):
            raise DelegationError(f"its signature does not verify. {_WAY_OUT}.")
        if not -MAX_AHEAD_SECONDS <= self._clock() - issued_at <= MAX_AGE_SECONDS:
            raise DelegationError("its signature has expired. Check the clocks of both machines.")

    def _mac(self, message: Message, issued_at: int) -> str:
        if self._secret is None:
            try:
                self._secret = _derived(read_or_create_key(self._key_file))
            except KeyFileError as error:
                raise DelegationError(f"{error} {_WAY_OUT}.") from error
        return hmac.digest(self._secret, _canonical(message, issued_at), "sha256").hex()

    def _warn(self, text: str, error: DelegationError) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(text, error)


def drop(fields: MutableMapping[str, Value]) -> None:
    """Remove a statement and its signature from metadata."""
    for name in (*FIELDS, SIGNATURE):
        if name in fields:
            del fields[name]


def without_skills(message: Message) -> Message:
    """The message for the event log: every message of a delegation contains the skills again, in full."""
    if not message.HasField("metadata") or SKILLS not in message.metadata.fields:
        return message
    stored = Message()
    stored.CopyFrom(message)
    del stored.metadata.fields[SKILLS]
    return stored


def _canonical(message: Message, issued_at: int) -> bytes:
    fields = message.metadata.fields
    signed = {
        "message_id": message.message_id,
        "context_id": message.context_id,
        "task_id": message.task_id,
        "parts": [MessageToDict(part) for part in message.parts],
        "statement": {name: get_value(fields[name]) for name in _SIGNED if name in fields},
        "issued_at": issued_at,
    }
    return json.dumps(signed, sort_keys=True, separators=(",", ":")).encode()


def _derived(key: bytes) -> bytes:
    """A secret for this purpose only."""
    return hmac.digest(key, b"delegation", "sha256")
