"""Operations, done. Each is answered with one report, and nothing that people can see is done twice.

Whatever is decided by looking at an operation alone is in requests.py; whether Slack did it, in outcomes.py.
"""

from __future__ import annotations

import logging
from typing import Final

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.places import Person, Place
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    CREATING,
    AppendStream,
    Arrived,
    DeleteMessage,
    File,
    Later,
    Operation,
    PostMessage,
    Refused,
    Report,
    SetStatus,
    StartStream,
    StopStream,
    Unclear,
    UpdateMessage,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.web_api.blocks import chunks_of, fits
from ai_platform_engineering.integrations.slack_bot.web_api.budget import Budget
from ai_platform_engineering.integrations.slack_bot.web_api.lookup import Lookup, Wanted, shares, wanted_of
from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import (
    Declined,
    Done,
    Lost,
    Outcome,
    TooMany,
    Unsent,
    outcome_of,
)
from ai_platform_engineering.integrations.slack_bot.web_api.refusals import TOKEN, refusal_of
from ai_platform_engineering.integrations.slack_bot.web_api.requests import Job, Request, blamed, request_of
from ai_platform_engineering.integrations.slack_bot.web_api.uploads import upload
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import without_retries

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
        self._token_refused = False

    async def do(
        self,
        place: Place,
        recipient: Person,
        operation: Operation,
        *,
        urgent: bool = False,
        holder: str = "",
        after: str = "",
    ) -> Report:
        """`holder` is the run that asks, by default the thread. It has one operation under way at a time, and gives
        different ones different numbers. `after` is the last message in the thread that it knows of."""
        job = Job(place, recipient, operation, holder or place.key, urgent, after)
        try:
            report = await self._do(job)
        except Exception:
            _log.exception("%s in %s could not be done", type(operation).__name__, place.key)
            report = Refused(operation.number, "other", "internal")
        if not isinstance(report, Later):
            self._pauses.pop(job.holder, None)
        return report

    async def find(self, place: Place, operation: Operation, *, holder: str = "", after: str = "") -> Report:
        """Whether an operation was done, where nobody waited for the answer. It is told for those that make something;
        whatever else may be done again."""
        job = Job(place, Person(place.team, ""), operation, holder or place.key, urgent=True, after=after)
        wanted = wanted_of(job)
        return await self._looked_up(job, wanted) if wanted else Unclear(operation.number)

    def know(self, channel: str, *messages: str) -> None:
        """These are accounted for: nothing that is looked for is one of them."""
        for ts in filter(None, messages):
            self._lookup.know(channel, ts)

    async def _do(self, job: Job) -> Report:
        match job.operation:
            case SetStatus():
                report = await self._set_status(job)
            case StartStream() if job.recipient.is_bot or not job.recipient.id:
                report = Refused(job.number, "no_streaming")
            case StartStream(piece=piece) | AppendStream(piece=piece) | StopStream(piece=piece) if not fits(piece):
                report = Refused(job.number, "too_long")
            case PostMessage(body=body) | UpdateMessage(body=body) if not fits(body):
                report = Refused(job.number, "too_long")
            case AppendStream(piece=piece) if not chunks_of(piece):
                report = Arrived(job.number)
            case UploadFile(file=file):
                report = await self._upload(job, file)
            case _:
                report = await self._ask(job)
        return report

    async def _set_status(self, job: Job) -> Report:
        """Nothing depends on it, so nothing waits for it either."""
        request = request_of(job)
        if not self._wait(job, request.method):
            outcome = await self._call(request)
            if isinstance(outcome, TooMany):
                self._budget.hold(request.method, outcome.seconds)
        return Arrived(job.number)

    async def _ask(self, job: Job) -> Report:
        """One call; or more, if Slack does not take all of the blocks."""
        while True:
            request = request_of(job, self._unknown_blocks)
            if wait := self._wait(job, request.method):
                return Later(job.number, wait)
            outcome = await self._call(request)
            if not self._takes_less(job, request, outcome):
                return await self._report(job, request, outcome, wanted_of(job))

    def _takes_less(self, job: Job, request: Request, outcome: Outcome) -> bool:
        """Whether Slack may take the same with fewer blocks. What it did not take is left out from then on."""
        if not isinstance(outcome, Declined) or refusal_of(outcome.error, job.operation) != "bad_blocks":
            return False
        if not isinstance(job.operation, PostMessage | UpdateMessage | StopStream):
            return False
        kind = blamed(request, outcome.hints)
        if kind is None:
            # So it was not for the blocks.
            self._unknown_blocks.clear()
            return False
        _log.warning("Slack does not seem to take blocks of type %s here: %s", kind, outcome.error)
        self._unknown_blocks.add(kind)
        return True

    async def _upload(self, job: Job, file: File) -> Report:
        content = file.content.encode(errors="replace")
        ask = Request("files.getUploadURLExternal", {"filename": file.name, "length": len(content)})
        if wait := self._wait(job, ask.method):
            return Later(job.number, wait)
        outcome = await self._call(ask)
        if not isinstance(outcome, Done):
            return self._not_shared(job, ask, outcome)
        sent = await upload(self._client, outcome.data["upload_url"], content)
        if not isinstance(sent, Done):
            return self._not_shared(job, ask, sent)
        file_id = outcome.data["file_id"]
        to = {"channel_id": job.place.channel, "thread_ts": job.place.thread_ts}
        share = Request("files.completeUploadExternal", {"files": [{"id": file_id, "title": file.title}], **to})
        while wait := self._wait(job, share.method):
            await self._clock.sleep(wait)
        return await self._report(job, share, await self._call(share), shares(file_id))

    def _not_shared(self, job: Job, request: Request, outcome: Outcome) -> Report:
        match outcome:
            case Declined():
                return self._refused(job, request, outcome)
            case TooMany(seconds=seconds):
                return self._too_many(job, request, seconds)
            case _:
                return self._later(job)

    async def _report(self, job: Job, request: Request, outcome: Outcome, wanted: Wanted | None) -> Report:
        match outcome:
            case Done(data=data):
                report = self._arrived(job, str(data.get("ts") or ""))
            case TooMany(seconds=seconds):
                report = self._too_many(job, request, seconds)
            case Unsent():
                report = self._later(job)
            case Lost(reason=reason):
                _log.info("It is unclear whether Slack did %s in %s: %s", request.method, job.place.key, reason)
                report = await self._looked_up(job, wanted) if wanted else Unclear(job.number)
            case Declined(error="message_not_found") if isinstance(job.operation, DeleteMessage):
                report = Arrived(job.number)
            case Declined():
                report = self._refused(job, request, outcome)
        return report

    async def _looked_up(self, job: Job, wanted: Wanted) -> Report:
        ts = await self._lookup.find(job, wanted)
        if ts is None:
            return Unclear(job.number)
        return self._arrived(job, ts) if ts else self._later(job)

    def _arrived(self, job: Job, ts: str) -> Report:
        if not isinstance(job.operation, CREATING):
            return Arrived(job.number)
        if ts:
            self._lookup.know(job.place.channel, ts)
        return Arrived(job.number, ts)

    def _too_many(self, job: Job, request: Request, seconds: float) -> Report:
        _log.info("Slack takes no %s for %g seconds", request.method, seconds)
        self._budget.hold(request.method, seconds)
        return Later(job.number, self._wait(job, request.method))

    def _later(self, job: Job) -> Report:
        """Again, in pauses that grow while nothing gets through."""
        pause = self._pauses.get(job.holder, _FIRST_PAUSE)
        self._pauses[job.holder] = min(2 * pause, _MAX_PAUSE)
        return Later(job.number, pause)

    def _refused(self, job: Job, request: Request, outcome: Declined) -> Report:
        why = refusal_of(outcome.error, job.operation)
        if outcome.error in TOKEN:
            if not self._token_refused:
                _log.error(
                    "Slack refuses SLACK_BOT_TOKEN: %s. Nothing can be delivered until there is another",
                    outcome.error,
                )
            self._token_refused = True
            # What is not delivered is kept, for the bot that is started with another token.
            return self._later(job)
        level = logging.WARNING if why in ("other", "bad_blocks") else logging.INFO
        needed = f"; the app lacks the scope {outcome.needed}" if outcome.needed else ""
        _log.log(level, "Slack refuses %s in %s: %s%s", request.method, job.place.key, outcome.error, needed)
        return Refused(job.number, why, outcome.error)

    def _wait(self, job: Job, method: str) -> float:
        return self._budget.wait(method, job.place.channel, job.holder, urgent=job.urgent)

    async def _call(self, request: Request) -> Outcome:
        method = getattr(self._client, request.method.replace(".", "_"))
        outcome = await outcome_of(method(**request.arguments))
        if isinstance(outcome, Done):
            self._token_refused = False
        return outcome
