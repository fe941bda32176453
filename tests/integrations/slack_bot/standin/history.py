"""What was to be seen when: every transcript there ever was, for questions about the way and not only the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ai_platform_engineering.integrations.slack_bot.preview.calls import Key
from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.integrations.slack_bot.preview.workspace import SlackWorkspace, Transcript


@dataclass(frozen=True, slots=True)
class Moment:
    time: float
    transcript: Transcript


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A text that people had seen, and that was not there any more."""

    time: float
    before: str
    after: str


@dataclass(slots=True)
class History:
    bot: str
    moments: dict[Key, list[Moment]] = field(default_factory=lambda: defaultdict(list))

    def record(self, workspace: SlackWorkspace, key: Key, now: float) -> bool:
        """Whether something is to be seen that was not before."""
        transcript = workspace.transcript(*key)
        moments = self.moments[key]
        if moments and moments[-1].transcript == transcript:
            return False
        moments.append(Moment(now, transcript))
        return True

    def of(self, channel: str, thread_ts: str) -> list[Moment]:
        return self.moments.get((channel, thread_ts), [])

    def at(self, channel: str, thread_ts: str, time: float) -> Transcript:
        """What was to be seen then."""
        past = [moment.transcript for moment in self.of(channel, thread_ts) if moment.time <= time]
        return past[-1] if past else Transcript(channel, thread_ts)

    def first_sign(self, channel: str, thread_ts: str) -> float | None:
        """When the bot first let itself be seen in the thread, by a status or a message."""
        for moment in self.of(channel, thread_ts):
            if moment.transcript.status or list(self._own(moment.transcript)):
                return moment.time
        return None

    def first_text(self, channel: str, thread_ts: str) -> float | None:
        """When the bot first had written something in the thread."""
        for moment in self.of(channel, thread_ts):
            if any(message.text.strip() for message in self._own(moment.transcript)):
                return moment.time
        return None

    def taken_back(self, channel: str, thread_ts: str) -> list[TakenBack]:
        """Where a message of the bot lost something that it had said. Only whitespace may come and go."""
        lost = []
        seen: dict[str, str] = {}
        for moment in self.of(channel, thread_ts):
            now = {message.ts: message.text for message in self._own(moment.transcript)}
            for ts, before in seen.items():
                after = now.get(ts, "")
                if not "".join(after.split()).startswith("".join(before.split())):
                    lost.append(TakenBack(moment.time, before, after))
            seen = now
        return lost

    def _own(self, transcript: Transcript) -> Iterator[SlackMessage]:
        return (message for message in transcript.messages if message.author == self.bot and not message.deleted)
