"""Every provider's stream shapes through the whole product: real chat classes, supervisor and agent over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from ai_platform_engineering.events import AgentFinished, Failed, PlanUpdated, TextDelta
from tests.llm.provider_shapes.anthropic_messages import ANTHROPIC, SIGNATURE
from tests.llm.provider_shapes.bedrock_converse import BEDROCK
from tests.llm.provider_shapes.gemini_generate import GEMINI
from tests.llm.provider_shapes.openai_chat import OPENAI_CHAT
from tests.llm.provider_shapes.openai_responses import OPENAI_RESPONSES
from tests.llm.provider_shapes.product import Product, answer, delegation, final, look_up, product, tools
from tests.llm.provider_shapes.recorder import EXECUTED
from tests.llm.provider_shapes.turns import WireCall, WireFormat, WireTurn

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # google-genai derives from aiohttp's session.
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
    # langchain-aws says so where a last turn has no tools.
    pytest.mark.filterwarnings("ignore:Tool messages were passed without toolConfig:RuntimeWarning"),
]

WIRES = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, BEDROCK, GEMINI)
CUT_ARGUMENTS = '{"name": "guestbook-stag'
THINKING = "The person must never read this thought."


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=WIRES, ids=lambda wire: wire.name)
async def provider(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    wire: WireFormat = request.param
    async with product(wire, tmp_path_factory.mktemp(wire.name)) as running:
        yield running


async def test_a_plain_answer(provider: Product) -> None:
    events = await provider.run(answer())
    ending = final(events)
    assert (ending.text, ending.limit) == ("All of it is healthy, as the librarian says.", None)
    assert len([event for event in events if isinstance(event, TextDelta)]) > 0


async def test_parallel_calls_all_run_once(provider: Product) -> None:
    both = WireTurn((), (look_up("guestbook"), look_up("payments")))
    events = await provider.run(delegation(), both, WireTurn(("Both are healthy.",)), answer())
    assert sorted(EXECUTED) == ["guestbook", "payments"]
    assert tools(events) == [("look_up", True, "")] * 2
    assert final(events).limit is None


async def test_thinking_is_neither_shown_nor_handed_back_and_stays_in_the_history(provider: Product) -> None:
    events = await provider.run(
        delegation(thinking=THINKING),
        WireTurn((), (look_up(),), thinking=THINKING),
        WireTurn(("It is healthy.",), thinking=THINKING),
        answer(thinking=THINKING),
    )
    assert THINKING not in repr(events)
    assert EXECUTED == ["guestbook"]
    (handed_back,) = provider.server.histories()[-1]
    assert THINKING not in (handed_back.result or "")
    if provider.wire is ANTHROPIC:
        assert SIGNATURE in json.dumps(provider.server.requests[-1]), "Anthropic wants signed thinking back"


@pytest.mark.parametrize(("end", "limits"), [("length", {"output_length"}), ("filter", {"content_filter", "refusal"})])
async def test_an_answer_that_was_cut_off_says_so(provider: Product, end: str, limits: set[str]) -> None:
    events = await provider.run(WireTurn(("The staging ", "cluster is"), end=end))  # type: ignore[arg-type]
    ending = final(events)
    assert ending.text == "The staging cluster is"
    assert ending.limit in limits


async def test_a_stream_that_ends_without_a_finish_reason_is_not_a_whole_answer(provider: Product) -> None:
    events = await provider.run(WireTurn(("The staging ", "cluster is"), end="broken"))
    if provider.wire is BEDROCK:
        assert isinstance(events[-1], Failed), "LangChain raises for Bedrock"
    else:
        assert (final(events).text, final(events).limit) == ("The staging cluster is", "stream_broken")


async def test_a_refusal_is_shown(provider: Product) -> None:
    words = "I cannot help with that request."
    events = await provider.run(WireTurn(refusal=words, end="refusal"))
    ending = final(events)
    assert ending.limit in ("refusal", "content_filter")
    if provider.wire is GEMINI:
        assert ending.text == "The model provider's content filter stopped the answer."
    else:
        assert ending.text.strip() == words


@pytest.mark.parametrize(
    ("end", "reason"), [("length", "output limit"), ("filter", "content filter"), ("broken", "connection")]
)
async def test_a_call_of_a_turn_that_was_cut_off_does_not_run(provider: Product, end: str, reason: str) -> None:
    if provider.wire is BEDROCK and end == "broken":
        pytest.skip("LangChain raises for Bedrock, which the test of broken streams covers")
    cut = WireTurn(("Let me see.",), (WireCall("look_up", CUT_ARGUMENTS),), end=end)  # type: ignore[arg-type]
    events = await provider.run(delegation(), cut, WireTurn((), (look_up(),)), WireTurn(("Healthy.",)), answer())
    assert EXECUTED == ["guestbook"]
    (refused, made) = tools(events)
    assert refused[:2] == ("look_up", False)
    assert reason in refused[2] or "refusal" in refused[2]
    assert made == ("look_up", True, "")
    assert "was not executed" in (provider.server.histories()[2][0].result or "")
    assert final(events).limit is None


async def test_a_cut_off_delegation_and_plan_do_not_begin(provider: Product) -> None:
    plan = WireCall("write_todos", '{"title": "Check", "steps": [{"content": "Look it')
    task = WireCall("task", '{"description": "Delete the staging')
    events = await provider.run(WireTurn((), (plan, task), end="length"), answer())
    assert not [event for event in events if isinstance(event, PlanUpdated)]
    (finished,) = [event for event in events if isinstance(event, AgentFinished)]
    assert (finished.ok, "output limit" in (finished.reason or "")) == (False, True)
    assert len(provider.server.requests) == 2


@pytest.mark.parametrize("arguments", [CUT_ARGUMENTS, "guestbook, please", '["guestbook"]'])
async def test_arguments_that_are_not_a_json_object_get_an_error_and_another_try(
    provider: Product, arguments: str
) -> None:
    # Gemini drops such a call itself; LangChain raises for a JSON array in the Responses API.
    dropped = provider.wire is GEMINI or (provider.wire is OPENAI_RESPONSES and arguments.startswith("["))
    bad = (
        WireTurn((), end="malformed")
        if provider.wire is GEMINI
        else WireTurn(("Let me see.",), (WireCall("look_up", arguments),))
    )
    events = await provider.run(delegation(), bad, WireTurn((), (look_up(),)), WireTurn(("Healthy.",)), answer())
    assert EXECUTED == ["guestbook"]
    expected = [] if dropped else [("look_up", False, "not executed: its arguments were not valid JSON")]
    assert tools(events) == [*expected, ("look_up", True, "")]
    assert final(events).limit is None


@pytest.mark.parametrize("call_id", ["", "call_0"], ids=["empty", "duplicate"])
async def test_calls_without_unique_ids_all_run_and_keep_the_history_valid(provider: Product, call_id: str) -> None:
    calls = [WireCall("look_up", json.dumps({"name": name}), call_id) for name in ("guestbook", "payments")]
    again = [WireCall("look_up", json.dumps({"name": "orders"}), call_id)]
    events = await provider.run(
        delegation(), WireTurn((), calls), WireTurn((), again), WireTurn(("All healthy.",)), answer()
    )
    assert sorted(EXECUTED[:2]) + EXECUTED[2:] == ["guestbook", "payments", "orders"]
    results = [exchange.result for exchange in provider.server.histories()[3]]
    assert all(name in str(result) for name, result in zip(("guestbook", "payments", "orders"), results, strict=True))
    assert [ok for _, ok, _ in tools(events)] == [True] * 3


async def test_an_agents_cut_answer_is_reported_as_cut(provider: Product) -> None:
    events = await provider.run(delegation(), WireTurn(("It is heal",), end="length"), answer())
    (handed_back,) = provider.server.histories()[-1]
    assert "It is heal" in (handed_back.result or "")
    assert "This answer is incomplete" in (handed_back.result or "")
    assert final(events).limit is None, "the supervisor's own answer is whole"


async def test_an_agent_that_declines_has_failed(provider: Product) -> None:
    events = await provider.run(delegation(), WireTurn(refusal="I cannot help with that.", end="refusal"), answer())
    (finished,) = [event for event in events if isinstance(event, AgentFinished)]
    assert not finished.ok
    assert final(events).limit is None


async def test_a_model_whose_calls_are_always_cut_off_is_asked_for_an_answer(provider: Product) -> None:
    cut = WireTurn((), (WireCall("task", '{"description": "Look up the sta'),), end="length")
    events = await provider.run(cut, cut, cut, answer())
    assert final(events).limit == "output_length"
