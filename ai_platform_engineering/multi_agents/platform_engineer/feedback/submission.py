"""Validates feedback from a request and determines its user."""

from __future__ import annotations

import re
import time
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.utils.a2a_common.request_context import safe_trace_id
from ai_platform_engineering.utils.a2a_common.server.statements import Statements
from ai_platform_engineering.utils.errors import ReadableError

MAX_BODY_SIZE: Final = 32_768
_LOOKS_SIGNED: Final = re.compile(r"ey[\w-]+\.[\w-]+\.[\w-]+")

_Id = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
_GivenId = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
_ALLOWED: Final = {
    "trace_id": "the trace id of an answer, at most 200 characters",
    "task_id": "a text of at most 200 characters",
    "message_id": "a text of at most 200 characters",
    "rating": "up or down",
    "reason": "a text of at most 4000 characters",
    "user": "a signed token or a name, at most 4000 characters",
    "surface": "a word of lower-case letters, digits and dashes, at most 40 characters",
}


class SubmissionError(ReadableError):
    """The feedback is invalid. The text names the field and the allowed values."""


class _Submission(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    trace_id: _GivenId
    rating: Literal["up", "down"]
    surface: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    task_id: _Id = ""
    message_id: _Id = ""
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = ""
    user: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = ""


def read_submission(body: Any, caller: Principal, statements: Statements) -> Feedback:
    """The feedback in the body of a request from `caller`. Raises `SubmissionError`."""
    try:
        sent = _Submission.model_validate(body)
    except ValidationError as error:
        raise SubmissionError(_sentence(error)) from None
    user, name = _user(sent, caller, statements)
    return Feedback(
        trace_id=safe_trace_id(sent.trace_id),
        rating=sent.rating,
        surface=sent.surface,
        at_ns=time.time_ns(),
        task_id=sent.task_id,
        message_id=sent.message_id,
        reason=sent.reason,
        user=user,
        user_name=name,
    )


def feedback_user(caller: Principal) -> str:
    """The user whose feedback the caller gives and sees, if it speaks for no other."""
    return caller.subject or ""


def _user(sent: _Submission, caller: Principal, statements: Statements) -> tuple[str, str]:
    """The user's id and name. The signature of a bot must be for the trace that is rated."""
    if sent.user and statements.may_speak_for_users(caller):
        try:
            user = statements.user(caller, sent.user, sent.trace_id)
        except ReadableError as error:
            raise SubmissionError(f"user: must be signed for this trace. {error}") from None
        return user.id, user.name
    if caller != ANONYMOUS:
        return feedback_user(caller), ""
    # A signature that cannot be verified proves no user.
    return ("" if _LOOKS_SIGNED.fullmatch(sent.user) else sent.user[:200]), ""


def _sentence(error: ValidationError) -> str:
    problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
    name = str(problem["loc"][0]) if problem["loc"] else ""
    if not name:
        return "The body must be a JSON object."
    if name not in _ALLOWED:
        return f"Unknown field; the fields are {', '.join(_ALLOWED)}."
    return f"{name}: must be {_ALLOWED[name]}."
