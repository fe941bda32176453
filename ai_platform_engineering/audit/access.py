"""Facts about access to a server: sign-ins, refused credentials, denials.

They are limited: an attacker must not fill the record, and a client that sends its key with each request signs in once.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.identity.principal import Principal

NOT_THEIR_CONVERSATION: Final = "the conversation belongs to another principal"
_SINGLE_REFUSALS: Final = 5
_SINGLE_REFUSALS_OF_ALL: Final = 1000
_REFUSAL_SECONDS: Final = 3600.0
_USE_SECONDS: Final = 24 * 3600.0
_MAX_REMEMBERED: Final = 10_000


@dataclass(slots=True)
class _Count:
    since: float
    number: int = 0


class AccessAudit:
    """Records the access to one server in `audit`. `address` is the network address of the caller."""

    def __init__(self, audit: Audit = NO_AUDIT, clock: Callable[[], float] = time.monotonic) -> None:
        self.audit = audit
        self._refusals = RefusalLimit(clock)
        self._uses = FirstUses(clock)

    def signed_in(self, principal: Principal, address: str) -> None:
        self.audit.record(AuditFact("sign_in", principal, address=address, outcome="ok"))

    def used(self, principal: Principal, address: str) -> None:
        """A key or token was accepted. Only its first use of a day from an address is recorded."""
        if self._uses.is_first((principal.verified_by, principal.subject, address)):
            self.audit.record(AuditFact("sign_in", principal, address=address, outcome="ok", reason="first use"))

    def refused(self, address: str, reason: str) -> None:
        """A credential was refused. `count` is the number of such refusals of the address in the hour."""
        if count := self._refusals.count((address, reason)):
            self.audit.record(AuditFact("sign_in_refused", address=address, reason=reason, count=count))

    def denied(self, principal: Principal, reason: str, *, address: str = "", conversation: str = "") -> None:
        """A verified caller may not do what it requests."""
        if count := self._refusals.count((principal.owner, address, reason)):
            self.audit.record(
                AuditFact("denied", principal, address=address, reason=reason, conversation=conversation, count=count)
            )


class RefusalLimit:
    """Which refusals are recorded: the first ones of a source in an hour, then each doubling of their number.

    The refusals of all sources together are limited in the same way.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: OrderedDict[Hashable, _Count] = OrderedDict()
        self._all = _Count(clock())

    def count(self, source: Hashable) -> int:
        """The number of refusals of this source in the hour, if this one is to be recorded; otherwise 0."""
        now = self._clock()
        counted = self._counts.pop(source, None)
        if counted is None or now - counted.since > _REFUSAL_SECONDS:
            counted = _Count(now)
        if now - self._all.since > _REFUSAL_SECONDS:
            self._all = _Count(now)
        self._counts[source] = counted
        if len(self._counts) > _MAX_REMEMBERED:
            self._counts.popitem(last=False)
        counted.number += 1
        if not _is_recorded(counted.number, _SINGLE_REFUSALS):
            return 0
        self._all.number += 1
        return counted.number if _is_recorded(self._all.number, _SINGLE_REFUSALS_OF_ALL) else 0


class FirstUses:
    """Remembers the uses of a day, so that only the first one is recorded. Each process remembers its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._recorded: OrderedDict[Hashable, float] = OrderedDict()

    def is_first(self, use: Hashable) -> bool:
        recorded, now = self._recorded.get(use), self._clock()
        if recorded is not None and now - recorded < _USE_SECONDS:
            return False
        self._recorded[use] = now
        self._recorded.move_to_end(use)
        if len(self._recorded) > _MAX_REMEMBERED:
            self._recorded.popitem(last=False)
        return True


def _is_recorded(number: int, singles: int) -> bool:
    """The first ones, then powers of two."""
    return number <= singles or number & (number - 1) == 0
