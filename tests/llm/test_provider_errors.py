"""Failures of model providers, from the provider's HTTP answer to what people read: real chat classes, a real
supervisor, and a provider on a loopback port that fails as real ones do."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from a2a.types.a2a_pb2 import CancelTaskRequest
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.events import AgentFinished, Canceled, Event, Failed, FinalResult, TextDelta
from ai_platform_engineering.llm import chat_model
from ai_platform_engineering.llm.failures import Kind, ModelFailedError
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Provider, load_settings
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from tests.invariants import check
from tests.llm.failing_provider import FailingProvider, Reply, failing_provider, openai_answer, openai_piece
from tests.llm.provider_error_bodies import BODIES
from tests.servers import Caller, Command, CommandLine, calling, serving
from tests.services.environment import not_here

SECRET = "sk-do-not-tell-anyone-123"
MODEL = "m-1"

# The settings of each provider, and the variables by which its package finds another address.
CONFIGURED: Mapping[Provider, dict[str, str]] = {
    "openai": {"OPENAI_API_KEY": SECRET, "OPENAI_ENDPOINT": "{address}/v1"},
    "azure-openai": {
        "AZURE_OPENAI_API_KEY": SECRET,
        "AZURE_OPENAI_ENDPOINT": "{address}",
        "AZURE_OPENAI_DEPLOYMENT": MODEL,
    },
    "anthropic-claude": {"ANTHROPIC_API_KEY": SECRET},
    "aws-bedrock": {"AWS_REGION": "eu-west-1"},
    "google-gemini": {"GOOGLE_API_KEY": SECRET},
    "groq": {"GROQ_API_KEY": SECRET},
    "ollama": {"OLLAMA_BASE_URL": "{address}"},
    "litellm": {"LITELLM_API_KEY": SECRET, "LITELLM_API_BASE": "{address}/v1", "MODEL_NAME": f"openai/{MODEL}"},
}
PACKAGE_VARIABLES: Mapping[Provider, dict[str, str]] = {
    "anthropic-claude": {"ANTHROPIC_API_URL": "{address}"},
    "aws-bedrock": {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "{address}",
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
    },
    "google-gemini": {"GOOGLE_GEMINI_BASE_URL": "{address}"},
    "groq": {"GROQ_API_BASE": "{address}"},
}
PACKAGES: Mapping[Provider, tuple[str, str]] = {
    "aws-bedrock": ("langchain_aws", "aws"),
    "groq": ("langchain_groq", "groq"),
    "ollama": ("langchain_ollama", "ollama"),
    "litellm": ("langchain_litellm", "litellm"),
}
TITLES: Mapping[Provider, str] = {
    "openai": "the server at OPENAI_ENDPOINT",
    "azure-openai": "Azure OpenAI",
    "anthropic-claude": "Anthropic",
    "aws-bedrock": "Amazon Bedrock",
    "google-gemini": "Gemini",
    "groq": "Groq",
    "ollama": "Ollama",
    "litellm": "LiteLLM",
}
KEYS: Mapping[Provider, str] = {
    **{
        provider: next(name for name, value in CONFIGURED[provider].items() if value == SECRET)
        for provider in TITLES
        if SECRET in CONFIGURED[provider].values()
    },
    "aws-bedrock": "the AWS credentials",
    "ollama": "OLLAMA_BASE_URL",
}
WORDS: Mapping[Kind, str] = {
    "key": "{title} rejects the credentials: check {key}.",
    "permission": "{title} does not let these credentials use {model}: check {key} and {setting}.",
    "model": "{title} has no model {model} for these credentials: set {setting} to another one",
    "quota": "The quota at {title} is used up: check its billing",
    "rate_limit": "{title} limits the requests to {model}: try again in {again}.",
    "context": "The conversation is too long for {model}: start a new conversation, or set LLM_CONTEXT_TOKENS",
    "policy": "The content policy of {title} rejected the request: rephrase it.",
    "request": "{title} rejected the request to {model} (400): check {setting}.",
    "server": "{title} reported an error of its own (500): try again in a moment.",
    "overloaded": "{title} is overloaded ({status}): try again in a moment.",
}


@pytest.fixture
def provider() -> Iterator[FailingProvider]:
    with failing_provider() as running:
        yield running


def prepare(name: Provider, address: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of a provider at this address; skips where its package is not installed."""
    package, extra = PACKAGES.get(name, ("langchain_core", ""))
    if find_spec(package) is None:
        not_here(f"The {extra} extra is not installed: run make setup EXTRAS={extra}.")
    for variable, value in PACKAGE_VARIABLES.get(name, {}).items():
        monkeypatch.setenv(variable, value.format(address=address))
    return configured(name, address)


def configured(name: Provider, address: str) -> dict[str, str]:
    variables = {variable: value.format(address=address) for variable, value in CONFIGURED[name].items()}
    return {"LLM_PROVIDER": name, "MODEL_NAME": MODEL, **variables}


def model_of(name: Provider, address: str, monkeypatch: pytest.MonkeyPatch, **more: str) -> BaseChatModel:
    return chat_model(load_settings(prepare(name, address, monkeypatch) | more, env_file=None))


@asynccontextmanager
async def supervisor(address: str, data_dir: Path, name: Provider = "openai", **more: str) -> AsyncIterator[Caller]:
    quick = {"LLM_MAX_RETRIES": "0", "SANDBOX": "false", "DATA_DIR": str(data_dir)}
    environ = {**configured(name, address), **quick, **more}
    async with serving(create_app, environ) as url, calling(url) as caller:
        yield caller


def failed(events: list[Event]) -> Failed:
    ending = check(events)
    assert isinstance(ending, Failed), ending
    assert ending.code == "model"
    assert SECRET not in str(events)
    return ending


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
@pytest.mark.parametrize("name", CONFIGURED)
async def test_every_failure_of_every_provider_is_a_sentence_to_act_on(
    name: Provider,
    provider: FailingProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    prepare(name, provider.address, monkeypatch)
    said = {}
    expected = {}
    setting = "AZURE_OPENAI_DEPLOYMENT" if name == "azure-openai" else "MODEL_NAME"
    model = f"openai/{MODEL}" if name == "litellm" else MODEL
    async with supervisor(provider.address, tmp_path, name) as caller:
        for kind, reply in BODIES[name].items():
            provider.answer(reply)
            caplog.clear()
            with caplog.at_level(logging.WARNING, "ai_platform_engineering"):
                ending = failed(await caller.ask("hello?"))
            again = "45 s" if name != "aws-bedrock" else "a moment"
            sentence = WORDS[kind].format(
                title=TITLES[name], key=KEYS[name], model=model, setting=setting, again=again, status=reply.status
            )
            sentence = sentence[0].upper() + sentence[1:]
            said[kind], expected[kind] = ending.message[: len(sentence)], sentence
            assert provider.requests == 1, f"{kind} was repeated"
            (details,) = [record.getMessage() for record in caplog.records if "guarded_call" in record.name]
            assert kind in details
            assert SECRET not in caplog.text
            assert "sk-do-no" not in caplog.text
    assert said == expected


async def test_a_rate_limit_is_waited_for_where_people_see_it(provider: FailingProvider, tmp_path: Path) -> None:
    limited = Reply(429, BODIES["openai"]["rate_limit"].body, {"Retry-After": "1"})
    async with supervisor(provider.address, tmp_path, LLM_MAX_RETRIES="2") as caller:
        provider.answer(limited, openai_answer("Fine."))
        events = await caller.ask("hello?")
        ending = check(events)
        assert isinstance(ending, FinalResult)
        texts = [(event.text, event.message_id) for event in events if isinstance(event, TextDelta)]
        notice, answer = texts
        assert notice[0] == f"The server at OPENAI_ENDPOINT limits the requests to {MODEL}; trying again in 1 s."
        assert answer == ("Fine.", ending.answer_message_id)
        assert provider.requests == 2

        provider.answer(Reply(500, {"error": {"message": "busy"}}), openai_answer("Quick."))
        events = await caller.ask("hello?")
        assert check(events) == events[-1]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Quick."

        provider.answer(Reply(429, limited.body, {"Retry-After": "301"}))
        assert failed(await caller.ask("hello?")).message.endswith("try again in 6 min.")
        assert provider.requests == 1


async def test_a_run_that_waits_for_a_provider_is_canceled_at_once(provider: FailingProvider, tmp_path: Path) -> None:
    provider.answer(BODIES["openai"]["rate_limit"])
    async with supervisor(provider.address, tmp_path, LLM_MAX_RETRIES="2") as caller:
        decoder, events = Decoder("supervisor"), []
        async with asyncio.timeout(90):
            async for update in caller.updates("hello?"):
                events += decoder.feed(update)
                if isinstance(events[-1] if events else None, TextDelta):
                    await caller.client.cancel_task(CancelTaskRequest(id=caller.task_id))
        ending = check([*events, *decoder.finish()])
        assert isinstance(ending, Canceled)
        assert provider.requests == 1


ANTHROPIC_START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}
ANTHROPIC_ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
OLLAMA_PIECE = {
    "model": MODEL,
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "Hi "},
}


@pytest.mark.parametrize(
    ("name", "reply", "sentence"),
    [
        ("aws-bedrock", Reply(ending="stall"), "Amazon Bedrock sent nothing within 1 s"),
        ("aws-bedrock", Reply(ending="reset"), "Amazon Bedrock cannot be reached: check AWS_REGION"),
        (
            "anthropic-claude",
            Reply(
                pieces=[
                    f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                    for event in (ANTHROPIC_START, ANTHROPIC_ERROR)
                ]
            ),
            "Anthropic is overloaded: try again in a moment.",
        ),
        ("groq", Reply(pieces=[openai_piece("Hi ")], ending="reset"), "The connection to Groq was lost"),
        (
            "ollama",
            Reply(
                pieces=[f"{json.dumps(OLLAMA_PIECE)}\n"],
                headers={"Content-Type": "application/x-ndjson"},
                ending="stall",
            ),
            "Ollama sent nothing within 1 s",
        ),
    ],
)
async def test_streams_of_other_providers_that_break(
    name: Provider,
    reply: Reply,
    sentence: str,
    provider: FailingProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    idle = "0.5" if reply.ending == "stall" else "60"
    model = model_of(name, provider.address, monkeypatch, LLM_IDLE_TIMEOUT=idle, LLM_MAX_RETRIES="0")
    provider.answer(reply)
    with pytest.raises(ModelFailedError, match=sentence):
        await model.ainvoke("hello?")


BEGUN = openai_piece("The answer begins ")
NAME = "The server at OPENAI_ENDPOINT"


async def test_a_stream_that_breaks_or_stalls_fails_with_a_sentence(provider: FailingProvider, tmp_path: Path) -> None:
    broken = {
        f"The connection to {NAME[0].lower()}{NAME[1:]} was lost in the middle of an answer: ask again.": Reply(
            pieces=[BEGUN], ending="reset"
        ),
        f"{NAME} sent nothing within 3 s: ask again, or raise LLM_IDLE_TIMEOUT.": Reply(pieces=[BEGUN], ending="stall"),
        f"{NAME} cannot be reached: check OPENAI_ENDPOINT, then ask again.": Reply(ending="reset"),
        f"{NAME} sent something that is not an answer of its API: check OPENAI_ENDPOINT.": Reply(pieces=["hello\n\n"]),
        f"{NAME} is overloaded: try again in a moment.": Reply(
            pieces=[BEGUN, 'data: {"error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n']
        ),
    }
    # On a busy machine the first piece takes its time, too.
    async with supervisor(provider.address, tmp_path, LLM_IDLE_TIMEOUT="3", LLM_MAX_RETRIES="1") as caller:
        for sentence, reply in broken.items():
            provider.answer(reply)
            events = await caller.ask("hello?")
            assert failed(events).message == sentence
            # Only a call that said nothing may be made again.
            assert provider.requests == (2 if "cannot be reached" in sentence else 1)
            assert provider.over.wait(60)


async def test_a_provider_that_is_not_there_is_named(tmp_path: Path, unused_tcp_port: int) -> None:
    async with supervisor(f"http://127.0.0.1:{unused_tcp_port}", tmp_path) as caller:
        assert failed(await caller.ask("hello?")).message == (
            f"{NAME} cannot be reached: check OPENAI_ENDPOINT, then ask again."
        )


@pytest.mark.parametrize(
    "limit", [{"LLM_TIMEOUT": "2"}, {"LLM_MAX_OUTPUT_CHARS": "20000"}], ids=lambda limit: next(iter(limit))
)
async def test_an_answer_without_an_end_is_cut_and_kept(
    limit: dict[str, str], provider: FailingProvider, tmp_path: Path
) -> None:
    provider.answer(Reply(pieces=[BEGUN], ending="endless"))
    async with supervisor(provider.address, tmp_path, **limit) as caller:
        ending = check(await caller.ask("hello?"))
        assert isinstance(ending, FinalResult)
        assert ending.text.startswith("The answer begins The answer begins")
        assert len(ending.text) < 5_000_000
        assert provider.over.wait(60), "the provider still sends"
    if "LLM_MAX_OUTPUT_CHARS" in limit:
        assert 20000 <= len(ending.text) < 20100


async def test_a_cut_answer_says_so_as_the_provider_would(provider: FailingProvider) -> None:
    provider.answer(Reply(pieces=[BEGUN], ending="endless"))
    variables = {"OPENAI_ENDPOINT": provider.address, "MODEL_NAME": MODEL, "LLM_MAX_OUTPUT_CHARS": "100"}
    message = await chat_model(load_settings(variables, env_file=None)).ainvoke("hello?")
    assert message.response_metadata["finish_reason"] == "length"
    assert len(message.text) < 200


async def test_a_call_that_only_thinks_ends_in_time(provider: FailingProvider, tmp_path: Path) -> None:
    provider.answer(Reply(pieces=[openai_piece("")], ending="endless"))
    async with supervisor(provider.address, tmp_path, LLM_TIMEOUT="0.5") as caller:
        assert failed(await caller.ask("hello?")).message == (
            f"{NAME} did not answer within 1 s: ask again, ask for less at once, or raise LLM_TIMEOUT."
        )


@pytest.mark.parametrize("placement", ["in-process", "remote"])
async def test_an_agent_whose_model_fails_is_a_failed_delegation_with_the_sentence(
    placement: str, provider: FailingProvider, tmp_path: Path
) -> None:
    provider.answer(BODIES["openai"]["key"])
    environ = {
        "LLM_PROVIDER": "offline",
        "OFFLINE_MODEL_DELAY": "0",
        "DATA_DIR": str(tmp_path),
        "ARGOCD_LLM_PROVIDER": "openai",
        "ARGOCD_MODEL_NAME": MODEL,
        "OPENAI_API_KEY": SECRET,
    }
    at = {"OPENAI_ENDPOINT": f"{provider.address}/v1"}
    async with AsyncExitStack() as stack:
        if placement == "remote":
            remote = await stack.enter_async_context(
                serving(lambda settings: create_agent_app(settings, "argocd"), environ | at)
            )
            environ |= {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": remote}
        url = await stack.enter_async_context(serving(create_app, environ | at))
        caller = await stack.enter_async_context(calling(url))
        events = await caller.ask("show argocd version")
    check(events)
    (finished,) = [event for event in events if isinstance(event, AgentFinished)]
    assert (finished.ok, finished.reason) == (False, f"{NAME} rejects the credentials: check OPENAI_API_KEY.")
    assert SECRET not in str(events)


async def test_a_supervisor_process_says_it_and_logs_the_providers_words_once(
    provider: FailingProvider, tmp_path: Path
) -> None:
    provider.answer(BODIES["openai"]["key"])
    environ = {
        "DATA_DIR": str(tmp_path),
        "SANDBOX": "false",
        "OPENAI_ENDPOINT": f"{provider.address}/v1",
        "OPENAI_API_KEY": SECRET,
        "MODEL_NAME": MODEL,
    }
    async with CommandLine(["serve", "--port", "0"], environ) as process, calling(process.url) as caller:
        assert failed(await caller.ask("hello?")).message == f"{NAME} rejects the credentials: check OPENAI_API_KEY."
    (line,) = [line for line in process.output if "Incorrect API key provided" in line]
    assert " WARNING " in line
    assert "sk-do-no" not in "".join(process.output)
    assert "Traceback" not in "".join(process.output)


def test_chat_shows_the_sentence(provider: FailingProvider, platform_engineer: Command) -> None:
    provider.answer(BODIES["openai"]["model"])
    ended = platform_engineer(
        "chat", "hello?", SANDBOX="false", OPENAI_ENDPOINT=f"{provider.address}/v1", OPENAI_MODEL_NAME=MODEL
    )
    assert ended.returncode == 1
    assert (
        f"{NAME} has no model {MODEL} for these credentials: set OPENAI_MODEL_NAME to another one, "
        "or check OPENAI_ENDPOINT."
    ) in ended.stderr
    assert "Something went wrong" not in ended.stderr
