"""A strict stand-in for Slack, over real sockets: a bot uses it through slack_sdk and Bolt, and notices nothing.

    async with standing_in() as slack:
        ada = slack.person("ada")
        channel = slack.channel("platform-help", ada)
        ...                                       # start the bot with slack.environ() and slack.api_url
        await slack.connected()                   # Socket Mode; or slack.calls_bot_at("http://.../slack/events")
        question = await ada.says(channel, f"{slack.mention} what is out of sync?")
        await slack.until(lambda: "guestbook" in ada.reads(channel, question.ts))
        answer = ada.sees(channel, question.ts).messages[-1]
        await ada.presses(answer, "Try again")
        assert slack.history.taken_back(channel.id, question.ts) == []
        assert slack.violations == []

It refuses what Slack refuses (tokens, scopes, rate limits, limits of texts and blocks, streams that have ended), and
`violations` is what a bot must not do at all. `slack.faults` makes calls go wrong. With a `VirtualClock`, hand the same
clock to the bot; `async with clock.passing()` lets time jump to the next time for which a task waits.
"""

from tests.integrations.slack_bot.standin.clock import VirtualClock
from tests.integrations.slack_bot.standin.deliveries import Ack
from tests.integrations.slack_bot.standin.directory import App, Conversation
from tests.integrations.slack_bot.standin.faults import Broken, Fault, Lost, Refusal, Silence, TooMany
from tests.integrations.slack_bot.standin.people import Person
from tests.integrations.slack_bot.standin.slack import Slack, our_app, standing_in
from tests.integrations.slack_bot.standin.typing_in import NotPossibleError, NotThereError
from tests.integrations.slack_bot.standin.violations import Violation

__all__ = [
    "Ack",
    "App",
    "Broken",
    "Conversation",
    "Fault",
    "Lost",
    "NotPossibleError",
    "NotThereError",
    "Person",
    "Refusal",
    "Silence",
    "Slack",
    "TooMany",
    "Violation",
    "VirtualClock",
    "our_app",
    "standing_in",
]
