"""The listeners with Bolt in front of them, a bot that only notes what it is asked, and a Slack that takes every call.

What Slack sends is signed and goes over HTTP, as it would.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import time
from typing import Any
from urllib.parse import urlencode

import httpx
from aiohttp import ClientSession
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.app import build_app
from ai_platform_engineering.integrations.slack_bot.channels import Channels
from ai_platform_engineering.integrations.slack_bot.http_routes import EVENTS_PATH, events_route
from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Identity
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, StopOutcome
from ai_platform_engineering.integrations.slack_bot.store import BotStore, StoredRun, ThreadSession
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating
from ai_platform_engineering.integrations.slack_bot.words import NOT_OPEN
from tests.servers import serving

SECRET = "secret-of-the-tests"
ME = Identity(team="T1", team_name="Acme", user="UBOT", bot="BBOT")
ANNA = SlackUser("T1", "UANNA")


@dataclass
class NotingBot:
    """Notes what it is asked. It keeps what it takes, as the real one does, so that the listeners know the threads."""

    store: BotStore
    taken: list[Incoming] = field(default_factory=list)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    forms: dict[tuple[str, str], Form] = field(default_factory=dict)
    refuses: dict[str, str] = field(default_factory=dict)
    """The sentence for people who may not answer, by user id."""
    seconds: float = 0.0
    error: Exception | None = None
    running: list[StoredRun] = field(default_factory=list)
    says: str | None = None
    stops: StopOutcome = "stopping"

    async def take(self, incoming: Incoming) -> str | None:
        await self._work()
        run_id = f"{incoming.place.key}/{incoming.ts}"
        if self.store.run(run_id):
            return None
        self.store.put_run(StoredRun(run_id, incoming, "context", task_id=f"task-{incoming.ts}"))
        self.store.put_session(ThreadSession(incoming.place, "context", 0.0))
        self.taken.append(incoming)
        return self.says

    async def form(self, task_id: str, form_id: str, person: SlackUser) -> Form | str:
        await self._work()
        return self.refuses.get(person.id) or self.forms.get((task_id, form_id), NOT_OPEN)

    async def answer(self, task_id: str, form_id: str, answer: Any, person: SlackUser) -> str | None:
        await self._work()
        self.asked.append(("answer", task_id, form_id, answer, person))
        return self.says

    async def show_again(self, task_id: str, form: Form) -> None:
        await self._work()
        self.asked.append(("show_again", task_id, form))

    async def cancel(self, task_id: str, person: SlackUser) -> StopOutcome:
        await self._work()
        self.asked.append(("cancel", task_id, person))
        return self.stops

    async def cancel_run(self, run_id: str, person: SlackUser) -> StopOutcome:
        await self._work()
        self.asked.append(("cancel_run", run_id, person))
        return self.stops

    def running_in(self, channel: str, thread_ts: str | None = None) -> list[StoredRun]:
        places = [(run, run.incoming.place) for run in self.running]
        here = [(run, place) for run, place in places if place.channel == channel]
        return [run for run, place in here if thread_ts in (None, place.thread_ts)]

    async def retry(self, task_id: str, person: SlackUser, *, addition: str = "") -> str | None:
        await self._work()
        self.asked.append(("retry", task_id, person, addition))
        return self.says

    async def rate(self, rating: Rating, person: SlackUser, *, good: bool, reason: str = "") -> None:
        await self._work()
        self.asked.append(("rate", rating, person, good, reason))

    async def agents(self) -> list[tuple[str, str]]:
        await self._work()
        return [("Jira", "Tickets <and> boards"), ("Argo CD", "Deployments")]

    async def skills(self) -> list[tuple[str, str]]:
        await self._work()
        return [("incident-triage", "Find out what is broken, and since when."), ("cost-review", "Costs <by> team")]

    async def workflows(self) -> list[tuple[str, str]]:
        await self._work()
        return [("Create GitHub Repo", "A repository with the usual settings")]

    async def examples(self) -> list[str]:
        await self._work()
        return ["Who is on call?", "What can you do?", "Three", "Four", "Five"]

    async def _work(self) -> None:
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.error:
            raise self.error


@dataclass
class TakingSlack:
    """A Web API that takes what it gets; `refusals` by method say otherwise."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    private_responses: list[dict[str, Any]] = field(default_factory=list)
    refusals: dict[str, str] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)

    def app(self, _settings: object) -> Starlette:
        return Starlette(
            routes=[
                Route("/response/{id}", self._respond, methods=["POST"]),
                Route("/api/{method}", self._call, methods=["POST", "GET"]),
            ]
        )

    def of(self, method: str) -> list[dict[str, Any]]:
        return [arguments for name, arguments in self.calls if name == method]

    async def _respond(self, request: Request) -> Response:
        self.private_responses.append(await request.json())
        return PlainTextResponse("ok")

    async def _call(self, request: Request) -> Response:
        method = request.path_params["method"]
        if request.headers.get("content-type", "").startswith("application/json"):
            arguments = await request.json()
        else:
            arguments = {**request.query_params, **(await request.form())}
        self.calls.append((method, arguments))
        if error := self.refusals.get(method):
            return JSONResponse({"ok": False, "error": error})
        answer: dict[str, Any] = {"ok": True, "channel": arguments.get("channel"), "ts": f"900.{len(self.calls):06}"}
        if method == "users.info":
            name = self.people.get(arguments["user"])
            answer = {"ok": True, "user": {"profile": {"display_name": name}}} if name else {"ok": False, "error": "x"}
        return JSONResponse(answer)


@dataclass
class Bench:
    bot: NotingBot
    slack: TakingSlack
    store: BotStore
    context: ListenerContext
    url: str
    http: httpx.AsyncClient
    _count: int = 0

    async def event(self, event: dict[str, Any], **headers: str) -> httpx.Response:
        self._count += 1
        event_id = headers.pop("event_id", f"Ev{self._count:08}")
        body = {"type": "event_callback", "team_id": "T1", "event_id": event_id, "event_time": int(time())}
        return await self.post(json.dumps({**body, "event": event}), "application/json", headers)

    async def interaction(self, payload: dict[str, Any]) -> httpx.Response:
        self._count += 1
        known = {
            "team": {"id": "T1"},
            "user": {"id": "UANNA", "team_id": "T1"},
            "trigger_id": f"trigger.{self._count}",
            "response_url": f"{self.url}/response/{self._count}",
        }
        body = urlencode({"payload": json.dumps({**known, **payload})})
        return await self.post(body, "application/x-www-form-urlencoded", {})

    async def press(self, action_id: str, value: str, **action: Any) -> httpx.Response:
        """Press a button of a message in a thread."""
        return await self.interaction(
            {
                "type": "block_actions",
                "channel": {"id": "C1"},
                "container": {"type": "message", "message_ts": "2.0", "channel_id": "C1", "thread_ts": "1.0"},
                "message": {"ts": "2.0", "thread_ts": "1.0"},
                "actions": [{"action_id": action_id, "block_id": "b", "type": "button", "value": value, **action}],
            }
        )

    async def command(self, text: str, channel: str = "C1", **fields: str) -> httpx.Response:
        self._count += 1
        body = {
            "command": "/platform",
            "text": text,
            "team_id": "T1",
            "user_id": "UANNA",
            "channel_id": channel,
            "trigger_id": f"trigger.{self._count}",
            "response_url": f"{self.url}/response/{self._count}",
            **fields,
        }
        return await self.post(urlencode(body), "application/x-www-form-urlencoded", {})

    async def post(self, body: str, content_type: str, headers: dict[str, str], secret: str = SECRET) -> httpx.Response:
        now = str(int(time()))
        signature = SignatureVerifier(secret).generate_signature(timestamp=now, body=body)
        signed = {"x-slack-request-timestamp": now, "x-slack-signature": signature or ""}
        return await self.http.post(
            EVENTS_PATH, content=body.encode(), headers={"content-type": content_type, **signed, **headers}
        )

    async def quiet(self) -> None:
        """Wait until everything is done that was begun."""
        await self.context.background.finish(10)


@asynccontextmanager
async def bench(channels: Channels | None = None, command: str = "/platform") -> AsyncIterator[Bench]:
    slack, store = TakingSlack(), MemoryStore()
    bot = NotingBot(store)
    log = logging.getLogger("tests.integrations.slack_bot.bolt")
    log.setLevel(logging.WARNING)
    async with serving(slack.app, {}) as url, ClientSession() as session:
        client = AsyncWebClient("xoxb-test", f"{url}/api/", session=session, logger=log)
        context = ListenerContext(bot, store, channels or Channels(None), client, ME, command)
        app = build_app(context, SECRET, log)
        asgi = Starlette(routes=[events_route(lambda: app, 1_000_000)])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(asgi), base_url="http://bot") as http:
            yield Bench(bot, slack, store, context, url, http)
        await context.background.finish(5)


def mention(text: str = "<@UBOT> who is on call?", **fields: Any) -> dict[str, Any]:
    known = {"type": "app_mention", "user": "UANNA", "team": "T1", "channel": "C1", "ts": "1.000100", "text": text}
    return {**known, **fields}


def message(text: str = "who is on call?", **fields: Any) -> dict[str, Any]:
    return mention(text, **{"type": "message", "channel_type": "channel", **fields})


def direct(text: str = "who is on call?", **fields: Any) -> dict[str, Any]:
    return message(text, **{"channel": "D1", "channel_type": "im", **fields})
