"""The slash command: help, agents, skills, workflows, cancel, or a question."""

from __future__ import annotations

from slack_bolt.async_app import AsyncAck, AsyncApp

from ai_platform_engineering.integrations.slack_bot.listeners.guidance import NOT_HERE, escaped, help_text, listed
from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.listeners.readable import readable
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation, location_of
from ai_platform_engineering.integrations.slack_bot.listeners.stop_words import STOP_WORDS
from ai_platform_engineering.integrations.slack_bot.places import Incoming, Place
from ai_platform_engineering.integrations.slack_bot.store import KeptRun


class Commands:
    def __init__(self, listening: Listening) -> None:
        self._listening = listening

    def listen(self, app: AsyncApp) -> None:
        app.command(self._listening.command)(self.typed)

    async def typed(self, ack: AsyncAck, body: Body) -> None:
        text = readable(body.get("text") or "")
        location = location_of(body, self._listening.identity.team)
        # A word counts only alone: "cancel the deployment" is a question.
        word = text.lower()
        if word in {"", "help"}:
            await ack(text=help_text(self._listening.command), response_type="ephemeral")
            return
        await ack()
        if not self._listening.first_time("typed", body.get("trigger_id")):
            return
        match word:
            case "agents":
                self._listening.later(location, self._agents())
            case "skills":
                self._listening.later(location, self._skills())
            case "workflows":
                self._listening.later(location, self._workflows())
            case "cancel":
                self._listening.later(location, self._cancel(location))
            case _:
                self._listening.later(location, self._ask(location, text))

    async def _agents(self) -> str:
        agents = await self._listening.bot.agents()
        return listed("Who works for me:", agents) if agents else "No agent is switched on right now."

    async def _skills(self) -> str:
        skills = await self._listening.bot.skills()
        if not skills:
            return "There are no skills."
        # Without the slash after the command it would be a question in words.
        return listed(f"Skills, used as in `{self._listening.command} /{skills[0][0]}`:", skills)

    async def _workflows(self) -> str:
        workflows = await self._listening.bot.workflows()
        if not workflows:
            return "There are no workflows."
        return listed(f"What can be started by name, as in `{self._listening.command} {workflows[0][0]}`:", workflows)

    async def _cancel(self, location: SlackLocation) -> str:
        bot, person = self._listening.bot, location.person
        mine = [run for run in bot.running_in(location.channel) if run.incoming.person.id == person.id]
        if not mine:
            return "Nothing is going on in this channel that you have asked for."
        told = [(run, STOP_WORDS[await bot.cancel_run(run.id, person)]) for run in mine]
        if len(told) == 1:
            return told[0][1]
        return "\n".join(f"• _{_short(run)}_: {sentence}" for run, sentence in told)

    async def _ask(self, location: SlackLocation, text: str) -> str | None:
        channel = self._listening.channels.of(location.channel, direct=location.channel.startswith("D"))
        if not channel.enabled:
            return NOT_HERE
        quoted = "\n".join(f"> {line}" for line in escaped(text).splitlines())
        posted = await self._listening.client.chat_postMessage(
            channel=location.channel,
            text=f"<@{location.person.id}> asks:\n{quoted}",
            unfurl_links=False,
            unfurl_media=False,
        )
        ts: str = posted["ts"]
        place = Place(self._listening.identity.team, posted["channel"], ts)
        return await self._listening.bot.take(Incoming(place, ts, text, location.person, False, channel.prompt))


def _short(run: KeptRun) -> str:
    words = " ".join(run.incoming.text.split())
    return escaped(words if len(words) <= 80 else words[:79] + "…")
