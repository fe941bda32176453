"""Turns that are not streamed: which ones these are, that they are read as streamed ones, and their limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event as ThreadEvent
from typing import Any

import pytest
import pytest_asyncio
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.events import Event, MessageEnded, TextDelta
from ai_platform_engineering.llm import chat_model
from ai_platform_engineering.llm.failures import ModelFailedError
from ai_platform_engineering.llm.provider_class import unstreamed
from ai_platform_engineering.settings import load_settings
from tests.llm.failing_provider import Reply, failing_provider
from tests.llm.loopback import served
from tests.llm.openai_server import openai_server
from tests.llm.provider_shapes.openai_chat import OPENAI_CHAT
from tests.llm.provider_shapes.product import Product, answer, delegation, final, look_up, product, tools
from tests.llm.provider_shapes.turns import WireCall, WireTurn
from tests.normalised import normalised

pytestmark = pytest.mark.asyncio(loop_scope="module")

REPORT = WireTurn(("guestbook ", "is healthy."))


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=[False, True], ids=["in-process", "remote"])
async def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    async with product(OPENAI_CHAT, tmp_path_factory.mktemp("product"), remote=request.param) as started:
        yield started


def streamed(running: Product) -> list[bool]:
    return [bool(request.get("stream")) for request in running.server.requests]


def without_agent_text(events: Sequence[Event]) -> list[Event]:
    kept = [e for e in events if not (isinstance(e, TextDelta | MessageEnded) and e.agent != "supervisor")]
    return normalised(kept)


@pytest.mark.parametrize(
    "agent_turns",
    [
        [WireTurn(calls=(look_up(),)), REPORT],
        [WireTurn(("I look ", "it up."), (look_up(), look_up("shop"))), REPORT],
        [WireTurn(calls=(look_up(),), end="length"), REPORT],
        [WireTurn(calls=(WireCall("look_up", '{"name": "guest'),)), REPORT],
        [WireTurn(("guestbook is",), end="length")],
        [WireTurn(("guestbook is",), end="filter")],
        [WireTurn(refusal="I cannot say that.")],
        [WireTurn(("<think>secret</think>", "It is healthy."))],
        [WireTurn(("It is healthy.",), thinking="secret")],
    ],
    ids=["call", "parallel", "cut call", "broken JSON", "cut", "filter", "refusal", "think", "reasoning"],
)
async def test_an_agents_turns_are_streamed_only_where_their_text_is_wanted_and_read_alike(
    running: Product, agent_turns: Sequence[WireTurn]
) -> None:
    turns = (delegation(), *agent_turns, answer())
    wanted = await running.run(*turns)
    assert streamed(running) == [True] * len(turns)
    content = running.server.requests[-1]["messages"][-1]["content"]
    unwanted = await running.run(*turns, agent_text=False)
    assert streamed(running) == [True, *(False for _ in agent_turns), True]
    assert running.server.requests[-1]["messages"][-1]["content"] == content
    assert without_agent_text(unwanted) == without_agent_text(wanted)
    assert final(unwanted) == replace(final(wanted), answer_message_id=final(unwanted).answer_message_id)
    assert "secret" not in repr(unwanted)


async def test_arguments_that_are_no_object_are_asked_for_again(running: Product) -> None:
    """LangChain raises for these where a stream has a call that can be refused."""
    wrong = WireTurn(calls=(WireCall("look_up", "[1]"),))
    events = await running.run(delegation(), wrong, WireTurn(calls=(look_up(),)), REPORT, answer(), agent_text=False)
    assert tools(events) == [("look_up", True, "")]
    assert final(events).limit is None


async def test_every_turn_is_streamed_where_the_settings_say_so(tmp_path: Path) -> None:
    wire = replace(OPENAI_CHAT, settings={**OPENAI_CHAT.settings, "LLM_ALWAYS_STREAM": "true"})
    async with product(wire, tmp_path) as running:
        await running.run(delegation(), WireTurn(calls=(look_up(),)), REPORT, answer(), agent_text=False)
        assert streamed(running) == [True] * 4


def whole_model(address: str, **more: str) -> BaseChatModel:
    variables = {"OPENAI_ENDPOINT": address, "MODEL_NAME": "m", "LLM_MAX_RETRIES": "0", **more}
    model = unstreamed(chat_model(load_settings(variables, env_file=None)))
    assert model is not None
    return model


async def test_silence_is_no_failure_until_the_call_may_take_no_longer() -> None:
    asked = ThreadEvent()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.wait(0.5)
            body = b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Late."}}]}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with served(Slow) as address:
        assert (await whole_model(address, LLM_IDLE_TIMEOUT="0.1").ainvoke("hello?")).text == "Late."
    with failing_provider() as provider:
        provider.answer(Reply(ending="stall"))
        with pytest.raises(ModelFailedError, match="did not answer within 1 s"):
            await whole_model(provider.address, LLM_TIMEOUT="0.3").ainvoke("hello?")
        assert provider.over.wait(60), "the provider still has a reader"


@pytest.mark.parametrize("body", [{}, {"choices": None}, [1], "text"], ids=["empty", "null", "list", "text"])
async def test_an_answer_of_another_form_is_a_sentence(body: Any) -> None:
    with failing_provider() as provider:
        provider.answer(Reply(body=body))
        with pytest.raises(ModelFailedError, match="sent something that is not an answer of its API"):
            await whole_model(provider.address).ainvoke("hello?")


async def test_an_answer_that_is_too_long_is_cut() -> None:
    with openai_server() as server:
        server.deltas = [{"content": "x" * 500}]
        message = await whole_model(server.address, LLM_MAX_OUTPUT_CHARS="100").ainvoke("hello?")
        assert (len(message.text), message.response_metadata["finish_reason"]) == (100, "length")
        arguments = {"name": "look_up", "arguments": '{"name": "' + "x" * 500 + '"}'}
        server.deltas = [{"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": arguments}]}]
        message = await whole_model(server.address, LLM_MAX_OUTPUT_CHARS="100").ainvoke("hello?")
        assert message.response_metadata["finish_reason"] == "length"
