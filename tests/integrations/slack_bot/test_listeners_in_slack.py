"""The listeners in a workspace that is as strict as Slack: what people do there, and what they see of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.answers import Approved, Submitted
from ai_platform_engineering.integrations.slack_bot.app import library_log
from ai_platform_engineering.integrations.slack_bot.authentication import authenticate
from ai_platform_engineering.integrations.slack_bot.channels import Channels
from ai_platform_engineering.integrations.slack_bot.forms.message import form_message
from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.integrations.slack_bot.serve import create_slack_app
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating, Stop
from ai_platform_engineering.integrations.slack_bot.web_api.blocks import footer_blocks
from ai_platform_engineering.integrations.slack_bot.web_api.budget import LIMITS, Budget
from ai_platform_engineering.settings import Settings, load_settings
from tests.integrations.slack_bot.listening_bench import NotingBot
from tests.integrations.slack_bot.standin import Conversation, Person, Slack, standing_in
from tests.servers import serving

TASK = "task-1"
FORM = Form("form-1", "Create GitHub Repo", tuple(FormField(name) for name in ("name", "owner", "topic", "license")))
APPROVAL = Form("form-2", "Delete it?", action_requests=({"name": "delete_repo", "args": {"name": "demo"}},))


@dataclass
class Office:
    slack: Slack
    bot: NotingBot
    client: AsyncWebClient
    budget: Budget
    ada: Person
    channel: Conversation

    async def posts(self, question: SlackMessage, text: str, blocks: list[dict[str, object]]) -> SlackMessage:
        """What the real bot would have posted in the thread."""
        await self.client.chat_postMessage(channel=self.channel.id, thread_ts=question.ts, text=text, blocks=blocks)
        return self.slack.transcript(self.channel, question.ts).messages[-1]

    def thread(self, question: SlackMessage) -> str:
        return self.ada.reads(self.channel, question.ts)


@asynccontextmanager
async def office(*, socket_mode: bool) -> AsyncIterator[Office]:
    async with standing_in() as slack:
        environ = slack.environ(socket_mode=socket_mode)
        settings: Settings = load_settings(environ, env_file=None)
        authentication = await authenticate(settings, library_log())
        store = MemoryStore()
        bot = NotingBot(store)
        clients: list[AsyncWebClient] = []
        budgets: list[Budget] = []

        @asynccontextmanager
        async def bot_with(client: AsyncWebClient, budget: Budget) -> AsyncIterator[NotingBot]:
            clients.append(client)
            budgets.append(budget)
            yield bot

        app = create_slack_app(settings, authentication, Channels(None), store, bot_with)
        async with serving(lambda _settings: app, environ) as url:
            if not socket_mode:
                slack.calls_bot_at(f"{url}/slack/events")
            ada = slack.person("ada")
            yield Office(slack, bot, clients[0], budgets[0], ada, slack.channel("help", ada))
        assert slack.violations == []
        assert [ack for ack in slack.acks if ack.problem] == []


@pytest.fixture(params=[True, False], ids=["socket-mode", "http"])
async def both(request: pytest.FixtureRequest) -> AsyncIterator[Office]:
    async with office(socket_mode=request.param) as made:
        yield made


@pytest.fixture
async def made() -> AsyncIterator[Office]:
    async with office(socket_mode=False) as made:
        yield made


async def test_people_talk_to_the_bot_in_every_way_there_is(both: Office) -> None:
    ben = both.slack.person("ben")
    both.channel.members.add(ben.id)
    both.slack.deliveries.copies = 2
    question = await both.ada.says(both.channel, f"{both.slack.mention} ask <@{ben.id}> &amp; me")
    await both.slack.deliveries.finish()
    await ben.says(both.channel, "without a mention", question.ts)
    await both.ada.says(both.slack.direct(both.ada), "hello")
    other = await ben.says(both.channel, "for no one")
    await both.slack.deliveries.finish()
    await both.ada.commands(both.channel, "/platform", "who is on call?")
    await both.slack.until(lambda: len(both.bot.taken) == 4)
    assert sorted(taken.text for taken in both.bot.taken) == [
        "ask @ben & me",
        "hello",
        "who is on call?",
        "without a mention",
    ]
    assert "asks" in both.ada.reads(both.channel)
    assert both.thread(other).count("\n") <= 2


async def test_what_is_only_for_one_is_seen_by_one(made: Office) -> None:
    ben = made.slack.person("ben")
    made.channel.members.add(ben.id)
    await made.ada.says(made.channel, made.slack.mention)
    await made.ada.commands(made.channel, "/platform", "agents")
    await made.slack.until(lambda: "Argo CD" in made.ada.reads(made.channel))
    await made.slack.until(lambda: "Mention me with a question" in made.ada.reads(made.channel))
    assert "Argo CD" not in ben.reads(made.channel)
    assert "Mention me with a question" not in ben.reads(made.channel)


async def test_where_the_bot_is_not_it_asks_to_be_invited(made: Office) -> None:
    elsewhere = made.slack.channel("elsewhere", made.ada, with_bot=False)
    await made.ada.commands(elsewhere, "/platform", "who is on call?")
    await made.slack.until(lambda: "Invite me" in made.ada.reads(elsewhere))
    assert made.bot.taken == []


async def test_the_messages_tab_offers_questions(made: Office) -> None:
    opened = {"type": "app_home_opened", "user": made.ada.id, "channel": made.slack.direct(made.ada).id}
    made.slack.deliveries.event({**opened, "tab": "messages", "event_ts": "1.0"})
    await made.slack.until(lambda: made.slack.calls("assistant.threads.setSuggestedPrompts"))
    (call,) = made.slack.calls("assistant.threads.setSuggestedPrompts")
    assert call.ok


async def test_stop_is_pressed(made: Office) -> None:
    question = await made.ada.says(made.channel, f"{made.slack.mention} deploy")
    message = await made.posts(question, "Working on it.", footer_blocks(Stop(TASK)))
    await made.ada.presses(message, "Stop")
    await made.slack.until(lambda: "Stopping it." in made.thread(question))
    assert [asked[:2] for asked in made.bot.asked] == [("cancel", TASK)]


async def test_a_bad_answer_is_told_why_and_answered_again(made: Office) -> None:
    question = await made.ada.says(made.channel, f"{made.slack.mention} which port?")
    message = await made.posts(question, "8080", footer_blocks(Rating(TASK, "trace", "message")))
    await made.ada.presses(message, "👎")
    await made.slack.until(lambda: made.ada.has_modal)
    await made.ada.fills_in(
        made.ada.modal,
        {"What is the matter?": "It is wrong", "In your own words": "It is 8443.", "And now?": ["Answer again now"]},
    )
    await made.ada.submits()
    await made.slack.until(lambda: len(made.bot.asked) == 3)
    assert [asked[0] for asked in made.bot.asked] == ["rate", "rate", "retry"]
    assert made.bot.asked[2][3] == "It is wrong: It is 8443."
    assert not made.ada.has_modal
    await made.ada.presses(message, "👍")
    await made.slack.until(lambda: "noted" in made.thread(question))


async def ask_with(made: Office, form: Form) -> tuple[SlackMessage, SlackMessage]:
    question = await made.ada.says(made.channel, f"{made.slack.mention} do it")
    made.bot.forms[TASK, form.form_id] = form
    text, blocks = form_message(form, TASK)
    return question, await made.posts(question, text, blocks)


async def test_a_form_is_filled_in_and_mistakes_are_told_in_it(both: Office) -> None:
    _, message = await ask_with(both, FORM)
    await both.ada.presses(message, "Fill in")
    await both.slack.until(lambda: both.ada.has_modal)
    modal = both.ada.modal
    await both.ada.fills_in(modal, {"name": "  ", "owner": "me", "topic": "x", "license": "MIT"})
    await both.ada.submits()
    assert both.ada.modal.errors
    await both.ada.fills_in(both.ada.modal, {"name": "demo"})
    await both.ada.submits()
    assert not both.ada.has_modal
    ((_, _, _, answer, _),) = both.bot.asked
    assert answer == Submitted({"name": "demo", "owner": "me", "topic": "x", "license": "MIT"})


async def test_only_who_may_decides(made: Office) -> None:
    eve = made.slack.person("eve")
    made.bot.refuses = {eve.id: f"Only <@{made.ada.id}> may answer this."}
    made.channel.members.add(eve.id)
    question, message = await ask_with(made, APPROVAL)
    await eve.presses(message, "Approve")
    await made.slack.until(lambda: "Only" in eve.reads(made.channel, question.ts))
    assert made.bot.asked == []
    await made.ada.presses(message, "Approve")
    await made.slack.until(lambda: bool(made.bot.asked))
    assert made.bot.asked[0][3] == Approved()


async def test_a_form_that_is_not_open_says_so_in_the_modal(made: Office) -> None:
    _, message = await ask_with(made, FORM)
    await made.ada.presses(message, "Fill in")
    await made.slack.until(lambda: made.ada.has_modal)
    made.bot.forms.clear()
    await made.ada.fills_in(made.ada.modal, {"name": "demo", "owner": "me", "topic": "x", "license": "MIT"})
    await made.ada.submits()
    assert "not open any more" in str(made.ada.modal.view["blocks"])


async def test_what_one_person_is_told_is_part_of_the_budget_of_all(made: Office) -> None:
    question = await made.ada.says(made.channel, f"{made.slack.mention} who is on call?")
    await made.ada.presses(await made.posts(question, "Working on it.", footer_blocks(Stop(TASK))), "Stop")
    await made.slack.until(lambda: made.slack.calls("chat.postEphemeral"))
    assert made.budget.pressure("chat.postEphemeral") == 1 / LIMITS["chat.postEphemeral"]
