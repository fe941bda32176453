"""The context of a request: caller, conversation, trace and options. Graphs, tools and remote agents get it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from a2a.types.a2a_pb2 import Message

from ai_platform_engineering.audit.log import NO_AUDIT, Audit
from ai_platform_engineering.budgets.decisions import Allowance
from ai_platform_engineering.budgets.usage import Usage
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.utils.characters import clean

if TYPE_CHECKING:
    from ai_platform_engineering.policy.decisions import PrincipalPolicy

MAX_INSTRUCTIONS_LENGTH: Final = 4_000
"""Characters of the instructions of a channel's owners."""


@dataclass(frozen=True, slots=True)
class RecordedEffect:
    """A tool call that changes something. `result` is None while it is in flight, or if its process died meanwhile."""

    result: str | None = None


class EffectLedger(Protocol):
    """Records the tool calls of a run that change something, so that a resumed run repeats none of them."""

    async def begin(self, call_id: str) -> RecordedEffect | None:
        """Record that a call begins. If it is recorded already, return that and change nothing."""

    async def finish(self, call_id: str, result: str) -> None: ...


class UsageMeter(Protocol):
    """Counts what one run uses."""

    async def check(self) -> None:
        """Raise if a budget is used up, so that the model must not be called."""

    def add(self, model: str, usage: Usage) -> None:
        """Count the usage of a model."""

    def add_report(self, key: str, models: Mapping[str, Usage]) -> None:
        """Count what a remote agent has reported. A report with the same key is counted once."""

    def allowance(self) -> Mapping[str, Any] | None:
        """What a delegated run may use, as a JSON object; None if that is not limited."""


@dataclass(frozen=True, slots=True)
class ApprovalUsed:
    """The outcome of using an approval. `refusal` completes the sentence "<tool> was not called: ...".

    If it is not the first use, the same call has used it before: that call may have run.
    """

    is_first: bool = False
    refusal: str | None = None


class ApprovalLedger(Protocol):
    """The records of the approvals of a task. Ids of decisions come with the answers that resume the graph."""

    async def use(self, decision_id: str, digest: str, used_digest: str, call: str) -> ApprovalUsed:
        """Use the approval, which is for a call with `digest`, for a call with `used_digest`: once."""

    async def signed_facts(self, decision_id: str) -> Mapping[str, Any] | None:
        """The decision as the supervisor signs it for a remote agent."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    context_id: str
    task_id: str
    trace_id: str
    user: str | None = None
    """The user that the client names. `caller` is the identity that the server has verified."""
    auth_token: str | None = field(default=None, repr=False)
    stream_text: bool = True
    """False if the caller wants only the final result of this agent."""
    stream_sub_agent_text: bool = False
    delegated: bool = False
    """A supervisor delegates this work. No later message comes to its conversation."""
    approvals: tuple[Mapping[str, Any], ...] = ()
    """The kinds of actions that need no further approval."""
    approval: Mapping[str, Any] | None = None
    """The decision about an approval that this message delivers to a remote agent, signed by the supervisor."""
    approval_ledger: ApprovalLedger | None = field(default=None, repr=False)
    step: Mapping[str, Any] | None = None
    """The workflow step that this work carries out."""
    taint: Mapping[str, Any] | None = None
    """The untrusted text of the conversation that delegates this work: its sources, and the hosts that a person has
    named."""
    instructions: str = ""
    """Instructions of the owners of the channel in which the question was asked."""
    silent_when_unsure: bool = False
    """The question was not addressed to the supervisor: no answer is better than a poor one."""
    resumed: bool = False
    """The run continues: a person answered its form, or another process had begun it."""
    answers_form: bool = False
    """The run continues with the answer to a form: `user` and `caller` are those of the person who answered."""
    started_calls: frozenset[str] = frozenset()
    """The calls that another process had announced before this one resumed the run."""
    epoch: int | None = None
    """Of the claim of this run; None if no other process can take the run over."""
    effects: EffectLedger | None = field(default=None, repr=False)
    audit: Audit = field(default=NO_AUDIT, repr=False)
    is_handed_over: Callable[[], bool] = field(default=lambda: False, repr=False)
    """True while this process stops and another one will continue the run. Remote tasks then go on."""
    caller: Principal = ANONYMOUS
    usage: UsageMeter | None = field(default=None, repr=False)
    """None if usage is not counted."""
    allowance: Allowance | None = field(default=None, repr=False)
    """What a delegated run may use; None if it is not limited."""
    policy: PrincipalPolicy | None = field(default=None, repr=False)
    """The rules of the policy that apply to the caller; None if there are none."""
    skills: tuple[Mapping[str, Any], ...] | None = None
    """The skills that a supervisor gives to an agent, in full; None if the agent uses its own catalog."""
    answered_by_other: bool = False
    """Another person than `caller` has answered the form: `auth_token` is that person's."""

    @property
    def callers_token(self) -> str | None:
        """The access token of `caller`; None if the request came with another credential."""
        is_own = self.caller.verified_by == "token" and not self.answered_by_other
        return self.auth_token if is_own else None


_MAX_USER_LENGTH: Final = 200
_DIGEST_LENGTH: Final = 32
_LINE_BREAKS: Final = str.maketrans(dict.fromkeys("\t\n\r\u2028\u2029", " "))
_TRACE_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,200}")


def bounded_user(user: str) -> str:
    """The id of a user on one line, with at most 200 visible characters. An id that was changed for that ends with a
    digest: two users stay two."""
    shown = clean(user.translate(_LINE_BREAKS))
    if shown == user and len(user) <= _MAX_USER_LENGTH:
        return user
    return f"{shown[: _MAX_USER_LENGTH - _DIGEST_LENGTH - 1]}#{_digest(user)}"


def safe_trace_id(trace_id: str) -> str:
    """The id of a trace, or its digest if it has unusual characters or is too long. The same id always gives the same
    digest, so the messages of a trace stay together."""
    return trace_id if _TRACE_ID.fullmatch(trace_id) else _digest(trace_id)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


USER_TOKEN_HEADER: Final = "X-Platform-Engineer-User-Token"  # noqa: S105 - the name of a header
"""With a delegation, the user's access token, for an agent whose servers take one. It is not stored."""

TO_CONVERSATION: Final = "to_conversation"
"""Metadata key of a message that names its conversation, but not the task whose form is open."""


def is_to_conversation(message: Message) -> bool:
    """Whether a message may be a new question, so that only a clear answer counts as an answer to a form."""
    return TO_CONVERSATION in message.metadata and message.metadata[TO_CONVERSATION] is True


def is_delegated(message: Message) -> bool:
    """Whether a supervisor delegates work with this message."""
    return "delegated" in message.metadata and message.metadata["delegated"] is True
