"""Performs operations in Slack and returns one report for each. Nothing visible is created twice.

`requests` builds the request of an operation; `outcomes` classifies Slack's response.
"""

from __future__ import annotations

import logging
from typing import Final

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.places import SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    CREATING,
    AppendStream,
    Deferred,
    DeleteMessage,
    Delivered,
    File,
    Operation,
    OperationRejected,
    PostMessage,
    Report,
    SetStatus,
    StartStream,
    StopStream,
    Unconfirmed,
    UpdateMessage,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.web_api.blocks import chunks_of, fits
from ai_platform_engineering.integrations.slack_bot.web_api.budget import Budget
from ai_platform_engineering.integrations.slack_bot.web_api.error_codes import TOKEN_ERRORS, rejection_of
from ai_platform_engineering.integrations.slack_bot.web_api.lookup import Lookup, Matcher, matcher_of, shares
from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import (
    Declined,
    Done,
    Outcome,
    RateLimited,
    RequestNotSent,
    ResponseLost,
    outcome_of,
)
from ai_platform_engineering.integrations.slack_bot.web_api.requests import ApiRequest, Job, rejected_block, request_of
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import upload, without_retries

_log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.5
_MAX_PAUSE: Final = 30.0


class Delivery:
    def __init__(self, client: AsyncWebClient, budget: Budget, clock: Clock) -> None:
        self._client = without_retries(client)
        self._budget = budget
        self._clock = clock
        self._lookup = Lookup(self._client, budget, clock)
        self._unknown_blocks: set[str] = set()
        self._pauses: dict[str, float] = {}
        self._token_rejected = False

    async def do(
        self,
        place: ThreadPlace,
        recipient: SlackUser,
        operation: Operation,
        *,
        urgent: bool = False,
        holder: str = "",
        after: str = "",
    ) -> Report:
        """Perform an operation. `holder` is its run, by default the thread. A holder has one operation in flight at a
        time and numbers them uniquely. `after` is the last message in the thread that it knows of."""
        job = Job(place, recipient, operation, holder or place.key, urgent, after)
        try:
            report = await self._do(job)
        except Exception:
            _log.exception("%s in %s failed", type(operation).__name__, place.key)
            report = OperationRejected(operation.number, "other", "internal")
        if not isinstance(report, Deferred):
            self._pauses.pop(job.holder, None)
        return report

    async def find(self, place: ThreadPlace, operation: Operation, *, holder: str = "", after: str = "") -> Report:
        """Look up whether an operation took effect whose response was lost. Only operations that create something are
        looked up; the others can be repeated, and are reported as unconfirmed."""
        job = Job(place, SlackUser(place.team, ""), operation, holder or place.key, urgent=True, after=after)
        matcher = matcher_of(job)
        return await self._look_up(job, matcher) if matcher else Unconfirmed(operation.number)

    def know(self, channel: str, *messages: str) -> None:
        """Exclude these messages from lookups, because their operations are known."""
        for ts in filter(None, messages):
            self._lookup.know(channel, ts)

    async def _do(self, job: Job) -> Report:
        match job.operation:
            case SetStatus():
                report = await self._set_status(job)
            case StartStream() if job.recipient.is_bot or not job.recipient.id:
                report = OperationRejected(job.number, "no_streaming")
            case StartStream(piece=piece) | AppendStream(piece=piece) | StopStream(piece=piece) if not fits(piece):
                report = OperationRejected(job.number, "too_long")
            case PostMessage(body=body) | UpdateMessage(body=body) if not fits(body):
                report = OperationRejected(job.number, "too_long")
            case AppendStream(piece=piece) if not chunks_of(piece):
                report = Delivered(job.number)
            case UploadFile(file=file):
                report = await self._upload(job, file)
            case _:
                report = await self._call_with_fallback(job)
        return report

    async def _set_status(self, job: Job) -> Report:
        """Best effort: skipped if the budget requires a wait, and always reported as delivered."""
        request = request_of(job)
        if not self._wait(job, request.method):
            outcome = await self._call(request)
            if isinstance(outcome, RateLimited):
                self._budget.hold(request.method, outcome.seconds)
        return Delivered(job.number)

    async def _call_with_fallback(self, job: Job) -> Report:
        """Make one call, and repeat it with fewer blocks if Slack rejects some."""
        while True:
            request = request_of(job, self._unknown_blocks)
            if wait := self._wait(job, request.method):
                return Deferred(job.number, wait)
            outcome = await self._call(request)
            if not self._omit_block(job, request, outcome):
                return await self._report(job, request, outcome, matcher_of(job))

    def _omit_block(self, job: Job, request: ApiRequest, outcome: Outcome) -> bool:
        """Whether to retry without a rejected block type. The type is omitted from then on."""
        if not isinstance(outcome, Declined) or rejection_of(outcome.error, job.operation) != "bad_blocks":
            return False
        if not isinstance(job.operation, PostMessage | UpdateMessage | StopStream):
            return False
        kind = rejected_block(request, outcome.hints)
        if kind is None:
            # No block is left to omit, so the blocks were not the cause.
            self._unknown_blocks.clear()
            return False
        _log.warning("Slack seems to reject blocks of type %s here: %s", kind, outcome.error)
        self._unknown_blocks.add(kind)
        return True

    async def _upload(self, job: Job, file: File) -> Report:
        content = file.content.encode(errors="replace")
        ask = ApiRequest("files.getUploadURLExternal", {"filename": file.name, "length": len(content)})
        if wait := self._wait(job, ask.method):
            return Deferred(job.number, wait)
        outcome = await self._call(ask)
        if not isinstance(outcome, Done):
            return self._upload_failed(job, ask, outcome)
        sent = await upload(self._client, outcome.data["upload_url"], content)
        if not isinstance(sent, Done):
            return self._upload_failed(job, ask, sent)
        file_id = outcome.data["file_id"]
        to = {"channel_id": job.place.channel, "thread_ts": job.place.thread_ts}
        share = ApiRequest("files.completeUploadExternal", {"files": [{"id": file_id, "title": file.title}], **to})
        while wait := self._wait(job, share.method):
            await self._clock.sleep(wait)
        return await self._report(job, share, await self._call(share), shares(file_id))

    def _upload_failed(self, job: Job, request: ApiRequest, outcome: Outcome) -> Report:
        match outcome:
            case Declined():
                return self._rejected(job, request, outcome)
            case RateLimited(seconds=seconds):
                return self._rate_limited(job, request, seconds)
            case _:
                return self._deferred(job)

    async def _report(self, job: Job, request: ApiRequest, outcome: Outcome, matcher: Matcher | None) -> Report:
        match outcome:
            case Done(data=data):
                report = self._delivered(job, str(data.get("ts") or ""))
            case RateLimited(seconds=seconds):
                report = self._rate_limited(job, request, seconds)
            case RequestNotSent():
                report = self._deferred(job)
            case ResponseLost(reason=reason):
                _log.info("The response to %s in %s was lost: %s", request.method, job.place.key, reason)
                report = await self._look_up(job, matcher) if matcher else Unconfirmed(job.number)
            case Declined(error="message_not_found") if isinstance(job.operation, DeleteMessage):
                report = Delivered(job.number)
            case Declined():
                report = self._rejected(job, request, outcome)
        return report

    async def _look_up(self, job: Job, matcher: Matcher) -> Report:
        ts = await self._lookup.find(job, matcher)
        if ts is None:
            return Unconfirmed(job.number)
        return self._delivered(job, ts) if ts else self._deferred(job)

    def _delivered(self, job: Job, ts: str) -> Report:
        if not isinstance(job.operation, CREATING):
            return Delivered(job.number)
        if ts:
            self._lookup.know(job.place.channel, ts)
        return Delivered(job.number, ts)

    def _rate_limited(self, job: Job, request: ApiRequest, seconds: float) -> Report:
        _log.info("Slack rate-limits %s for %g seconds", request.method, seconds)
        self._budget.hold(request.method, seconds)
        return Deferred(job.number, self._wait(job, request.method))

    def _deferred(self, job: Job) -> Report:
        """Retry with exponential backoff."""
        pause = self._pauses.get(job.holder, _FIRST_PAUSE)
        self._pauses[job.holder] = min(2 * pause, _MAX_PAUSE)
        return Deferred(job.number, pause)

    def _rejected(self, job: Job, request: ApiRequest, outcome: Declined) -> Report:
        reason = rejection_of(outcome.error, job.operation)
        if outcome.error in TOKEN_ERRORS:
            if not self._token_rejected:
                _log.error(
                    "Slack rejects SLACK_BOT_TOKEN: %s. Nothing can be delivered until the bot has a valid token",
                    outcome.error,
                )
            self._token_rejected = True
            # Undelivered content stays stored until the bot is restarted with a valid token.
            return self._deferred(job)
        level = logging.WARNING if reason in ("other", "bad_blocks") else logging.INFO
        needed = f"; the app lacks the scope {outcome.needed}" if outcome.needed else ""
        _log.log(level, "Slack rejects %s in %s: %s%s", request.method, job.place.key, outcome.error, needed)
        return OperationRejected(job.number, reason, outcome.error)

    def _wait(self, job: Job, method: str) -> float:
        return self._budget.wait(method, job.place.channel, job.holder, urgent=job.urgent)

    async def _call(self, request: ApiRequest) -> Outcome:
        method = getattr(self._client, request.method.replace(".", "_"))
        outcome = await outcome_of(method(**request.arguments))
        if isinstance(outcome, Done):
            self._token_rejected = False
        return outcome
