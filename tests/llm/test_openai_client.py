"""The product's OpenAI client, with dict chunks over aiohttp, beside LangChain's own: both read every answer alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk

from ai_platform_engineering.llm import chat_model
from ai_platform_engineering.llm.failures import ModelFailedError
from ai_platform_engineering.llm.openai_http import shared_http_client
from ai_platform_engineering.settings import load_settings
from tests.knowledge_bases.websites import certificate
from tests.llm.failing_provider import FailingProvider, Reply, failing_provider, openai_answer, openai_piece
from tests.llm.openai_server import openai_server
from tests.llm.provider_error_bodies import BODIES

BEGUN = openai_piece("The answer begins ")
END = [openai_piece("", "stop"), "data: [DONE]\n\n"]


@pytest.fixture
def provider() -> Iterator[FailingProvider]:
    with failing_provider() as running:
        yield running


def settings_of(address: str, **more: str) -> Mapping[str, str]:
    return {"LLM_PROVIDER": "openai", "OPENAI_ENDPOINT": f"{address}/v1", "MODEL_NAME": "m", **more}


def model_at(address: str, **more: str) -> BaseChatModel:
    return chat_model(load_settings(settings_of(address, **more), env_file=None))


async def langchains_own(address: str, **more: str) -> Any:
    # Outside of the event loop there is no aiohttp client.
    model: Any = await asyncio.to_thread(model_at, address, **more)
    model.async_client = model.root_async_client.chat.completions
    return model


async def outcome(model: BaseChatModel) -> tuple[Any, ...]:
    merged: AIMessageChunk | None = None
    failure: tuple[Any, ...] = ()
    try:
        async for chunk in model.astream("hello?"):
            assert isinstance(chunk, AIMessageChunk)
            merged = chunk if merged is None else merged + chunk
    except ModelFailedError as error:
        failed = error.failure
        failure = (str(error), failed.kind, failed.status, failed.retry_after, failed.limit)
    if merged is None:
        return failure
    content = (merged.content, merged.tool_calls, merged.invalid_tool_calls, merged.additional_kwargs)
    return (*content, merged.response_metadata, merged.usage_metadata, *failure)


def piece(delta: Any, **more: Any) -> str:
    return "data: " + json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta, **more}]}) + "\n\n"


def call(index: int, name: str | None, arguments: str, **more: Any) -> dict[str, Any]:
    return {"index": index, "function": {"name": name, "arguments": arguments}, **more}


PARALLEL = [
    piece({"role": "assistant", "tool_calls": [call(0, "one", "", id="a"), call(1, "two", "", id="b")]}),
    piece({"tool_calls": [call(1, None, '{"y": 2}')]}),
    piece({"tool_calls": [call(0, None, '{"x": ')]}),
    piece({"tool_calls": [call(0, None, "1}")]}),
    piece({}, finish_reason="tool_calls"),
]
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": None,
}
ODD = {
    "no delta": [BEGUN, 'data: {"choices": [{"index": 0, "finish_reason": "stop"}]}\n\n'],
    "null delta": [BEGUN, piece(None, finish_reason="stop")],
    "null choices": [BEGUN, 'data: {"id": "c", "choices": null}\n\n', *END],
    "no choices": ['data: {"id": "c"}\n\n', BEGUN, 'data: {"choices": [], "usage": null}\n\n', *END],
    "usage": [BEGUN, *END[:1], f'data: {{"choices": [], "usage": {json.dumps(USAGE)}}}\n\n', END[1]],
    "call without an index": [piece({"tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{}"}}]}), *END],
    "call without arguments": [piece({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x"}}]}), *END],
    "more fields": [piece({"content": "Hi", "reasoning_content": "hm", "refusal": None}, logprobs=None), *END],
    "refusal": [piece({"refusal": "No."}), *END],
    "comments": [": ping\n\n", BEGUN, ": ping\n\n", *END],
    "no end": [BEGUN],
}

ANSWERS: Mapping[str, Sequence[Reply]] = {
    **{kind: [reply] for kind, reply in BODIES["openai"].items()},
    "500, then an answer": [BODIES["openai"]["server"], openai_answer("Fine.")],
    "429 that is over at once": [
        Reply(429, BODIES["openai"]["rate_limit"].body, {"Retry-After": "0"}),
        openai_answer("Fine."),
    ],
    "error in the stream": [Reply(pieces=[BEGUN, 'data: {"error": {"type": "overloaded_error", "message": "o"}}\n\n'])],
    "error of another form": [Reply(pieces=['data: {"error": "broken"}\n\n'])],
    "reset in the stream": [Reply(pieces=[BEGUN], ending="reset")],
    "reset at once": [Reply(ending="reset")],
    "stall": [Reply(pieces=[BEGUN], ending="stall")],
    "stall at once": [Reply(ending="stall")],
    "endless": [Reply(pieces=[openai_piece("x" * 10)], ending="endless")],
    "no JSON": [Reply(pieces=["data: {{{\n\n"])],
    "a page": [Reply(pieces=["<html></html>"], headers={"Content-Type": "text/html"})],
    "parallel calls": [Reply(pieces=PARALLEL)],
    **{name: [Reply(pieces=pieces)] for name, pieces in ODD.items()},
}
LIMITS = {
    # Enough for the piece before the stall, also on a busy machine.
    "stall": {"LLM_IDLE_TIMEOUT": "2"},
    "stall at once": {"LLM_IDLE_TIMEOUT": "0.5"},
    "endless": {"LLM_MAX_OUTPUT_CHARS": "5"},
}


@pytest.mark.parametrize(("name", "answers"), ANSWERS.items(), ids=ANSWERS)
async def test_every_answer_is_read_as_langchain_reads_it(
    provider: FailingProvider, name: str, answers: Sequence[Reply]
) -> None:
    limits = {"LLM_MAX_RETRY_WAIT": "1", "LLM_MAX_RETRIES": "1", **LIMITS.get(name, {})}
    found = []
    for model in (await langchains_own(provider.address, **limits), model_at(provider.address, **limits)):
        provider.answer(*answers)
        found.append((await outcome(model), provider.requests))
    assert found[0] == found[1]


async def test_requests_are_those_of_langchain() -> None:
    with openai_server() as server:
        address = server.address.removesuffix("/v1")
        models = [await langchains_own(address), model_at(address)]
        for model in models:
            more = {"extra_headers": {"X-Tenant": "a"}, "extra_query": {"q": "1"}, "extra_body": {"top_k": 5}}
            await model.bind(**more).ainvoke("hi")
    assert server.requests[0] == server.requests[1]
    assert server.paths == ["/v1/chat/completions?q=1"] * 2
    sent = [{name: headers.get(name) for name in ("authorization", "x-tenant", "accept")} for headers in server.headers]
    assert sent[0] == sent[1]


async def test_chunks_reach_langchain_as_they_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade of openai or langchain-openai that no longer takes dicts, or calls something else, fails here."""
    seen: list[dict[str, Any]] = []
    with openai_server() as server:
        model: Any = model_at(server.address.removesuffix("/v1"))
        convert = type(model)._convert_chunk_to_generation_chunk

        def note(self: Any, chunk: dict[str, Any], *more: Any) -> Any:
            seen.append(chunk)
            return convert(self, chunk, *more)

        monkeypatch.setattr(type(model), "_convert_chunk_to_generation_chunk", note)
        assert (await model.ainvoke("hello?")).text == "Hello there"
    # The typed chunk has all fields of the API, sent or not.
    assert [sorted(chunk) for chunk in seen] == [["choices", "created", "id", "model", "object"]] * 3


@pytest.mark.parametrize(
    ("endpoint", "variables"),
    [
        ("http://models.invalid", {"HTTP_PROXY": "{address}"}),
        ("http://models.invalid", {"ALL_PROXY": "{address}"}),
        ("http://models.invalid", {"OPENAI_PROXY": "{address}"}),
        ("{address}", {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}),
    ],
)
async def test_proxies_of_the_environment_are_used(
    provider: FailingProvider, monkeypatch: pytest.MonkeyPatch, endpoint: str, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(address=provider.address))
    provider.answer(openai_answer("Fine."))
    model = model_at(endpoint.format(address=provider.address), LLM_MAX_RETRIES="0")
    assert (await model.ainvoke("hello?")).text == "Fine."


async def test_a_proxy_that_aiohttp_cannot_use_is_left_to_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_http_client() is shared_http_client()
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    assert shared_http_client() is None


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_certificate_is_trusted_by_the_environments_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    context, file = certificate(tmp_path, "localhost")
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with openai_server(context) as server:
        address = server.address.removesuffix("/v1").replace("127.0.0.1", "localhost")
        model = model_at(address, LLM_MAX_RETRIES="0")
        if trusted:
            assert (await model.ainvoke("hello?")).text == "Hello there"
        else:
            with pytest.raises(ModelFailedError, match="cannot be reached"):
                await model.ainvoke("hello?")


def test_the_client_is_closed_with_its_event_loop(recwarn: pytest.WarningsRecorder) -> None:
    clients = []

    async def ask() -> None:
        clients.append(shared_http_client())
        with openai_server() as server:
            await model_at(server.address.removesuffix("/v1")).ainvoke("hello?")

    asyncio.run(ask())
    asyncio.run(ask())
    assert clients[0] is not clients[1]
    assert all(client is not None and client.is_closed for client in clients)
    assert not [warning for warning in recwarn if "Unclosed" in str(warning.message)]
