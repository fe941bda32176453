"""The slash command: help, agents, skills, workflows, cancel, or a question."""

from __future__ import annotations

from slack_bolt.async_app import AsyncAck, AsyncApp

from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.readable import readable
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation, location_of
from ai_platform_engineering.integrations.slack_bot.listeners.texts import (
    NOT_HERE,
    STOP_SENTENCES,
    escaped,
    help_text,
    listed,
)
from ai_platform_engineering.integrations.slack_bot.places import Incoming, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import StoredRun


class Commands:
    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def listen(self, app: AsyncApp) -> None:
        app.command(self._context.command)(self.on_command)

    async def on_command(self, ack: AsyncAck, body: Body) -> None:
        text = readable(body.get("text") or "")
        location = location_of(body, self._context.identity.team)
        # A subcommand is one word only: "cancel the deployment" is a question.
        word = text.lower()
        if word in {"", "help"}:
            await ack(text=help_text(self._context.command), response_type="ephemeral")
            return
        await ack()
        if not self._context.first_time("typed", body.get("trigger_id")):
            return
        match word:
            case "agents":
                self._context.run_later(location, self._agents())
            case "skills":
                self._context.run_later(location, self._skills())
            case "workflows":
                self._context.run_later(location, self._workflows())
            case "cancel":
                self._context.run_later(location, self._cancel(location))
            case _:
                self._context.run_later(location, self._ask(location, text))

    async def _agents(self) -> str:
        agents = await self._context.bot.agents()
        return listed("My agents:", agents) if agents else "No agent is enabled right now."

    async def _skills(self) -> str:
        skills = await self._context.bot.skills()
        if not skills:
            return "There are no skills."
        # Without the slash before the skill's name, the text would be a question.
        return listed(f"Skills, used as in `{self._context.command} /{skills[0][0]}`:", skills)

    async def _workflows(self) -> str:
        workflows = await self._context.bot.workflows()
        if not workflows:
            return "There are no workflows."
        return listed(f"Workflows, started as in `{self._context.command} {workflows[0][0]}`:", workflows)

    async def _cancel(self, location: SlackLocation) -> str:
        bot, person = self._context.bot, location.person
        mine = [run for run in bot.running_in(location.channel) if run.incoming.person.id == person.id]
        if not mine:
            return "You have no running request in this channel."
        outcomes = [(run, STOP_SENTENCES[await bot.cancel_run(run.id, person)]) for run in mine]
        if len(outcomes) == 1:
            return outcomes[0][1]
        return "\n".join(f"• _{_short(run)}_: {sentence}" for run, sentence in outcomes)

    async def _ask(self, location: SlackLocation, text: str) -> str | None:
        channel = self._context.channels.of(location.channel, direct=location.channel.startswith("D"))
        if not channel.enabled:
            return NOT_HERE
        quoted = "\n".join(f"> {line}" for line in escaped(text).splitlines())
        posted = await self._context.client.chat_postMessage(
            channel=location.channel,
            text=f"<@{location.person.id}> asks:\n{quoted}",
            unfurl_links=False,
            unfurl_media=False,
        )
        ts: str = posted["ts"]
        place = ThreadPlace(self._context.identity.team, posted["channel"], ts)
        return await self._context.bot.take(Incoming(place, ts, text, location.person, False, channel.prompt))


def _short(run: StoredRun) -> str:
    words = " ".join(run.incoming.text.split())
    return escaped(words if len(words) <= 80 else words[:79] + "…")
