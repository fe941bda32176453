"""The chat model of the supervisor and of each agent, and the requests that a provider gets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from ai_platform_engineering.llm import chat_model, is_offline
from ai_platform_engineering.llm.providers import PROVIDERS, default_provider
from ai_platform_engineering.manifest import ModelChoice
from ai_platform_engineering.offline_model import OfflineChatModel
from ai_platform_engineering.settings import Provider, Settings, SettingsError, load_settings
from ai_platform_engineering.utils.errors import ReadableError
from tests.llm.offline_world import argocd_tools
from tests.llm.openai_server import OpenAIServer, openai_server
from tests.services.environment import not_here

SECRET = "sk-do-not-tell-anyone-123"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


def settings_of(**variables: str) -> Settings:
    return load_settings(variables, env_file=None)


@pytest.mark.parametrize(
    ("variables", "provider"),
    [
        ({}, "offline"),
        ({"OPENAI_API_KEY": SECRET}, "openai"),
        ({"OPENAI_ENDPOINT": "http://127.0.0.1:1/v1"}, "openai"),
        ({"ANTHROPIC_API_KEY": SECRET}, "anthropic-claude"),
        ({"OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}, "openai"),
        ({"GROQ_API_KEY": SECRET}, "offline"),
        ({"OPENAI_API_KEY": SECRET, "LLM_PROVIDER": "offline"}, "offline"),
        ({"GROQ_API_KEY": SECRET, "LLM_PROVIDER": "groq"}, "groq"),
    ],
)
def test_the_provider_without_a_choice_of_an_agents_own(variables: dict[str, str], provider: Provider) -> None:
    settings = settings_of(**variables)
    assert default_provider(settings) == provider
    assert is_offline(settings) is (provider == "offline")


def test_nothing_configured_gives_the_offline_model_with_its_delay() -> None:
    model = chat_model(settings_of(OFFLINE_MODEL_DELAY="0.25"))
    assert isinstance(model, OfflineChatModel)
    assert model.delay == 0.25


def test_without_a_delay_only_the_supervisors_answer_is_paced() -> None:
    supervisor, agent = chat_model(settings_of()), chat_model(settings_of(), "argocd")
    assert isinstance(supervisor, OfflineChatModel)
    assert isinstance(agent, OfflineChatModel)
    assert (supervisor.delay, agent.delay) == (0, 0)
    assert 0 < supervisor.answer_time <= 1
    assert agent.answer_time == 0


async def test_an_openai_compatible_server_gets_the_question_and_streams_the_answer(server: OpenAIServer) -> None:
    model = chat_model(
        settings_of(
            OPENAI_ENDPOINT=server.address, OPENAI_API_KEY=SECRET, OPENAI_MODEL_NAME="local-7b", LLM_TEMPERATURE="0.5"
        )
    )
    pieces = [str(chunk.text) async for chunk in model.bind_tools(argocd_tools()).astream([HumanMessage("hi?")])]
    assert [piece for piece in pieces if piece] == ["Hello", " there"]
    (request,) = server.requests
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert (request["model"], request["stream"], request["temperature"]) == ("local-7b", True, 0.5)
    assert request["messages"] == [{"role": "user", "content": "hi?"}]
    assert [entry["function"]["name"] for entry in request["tools"]] == [item.name for item in argocd_tools()]


async def test_a_single_call_streams_too(server: OpenAIServer) -> None:
    model = chat_model(settings_of(OPENAI_ENDPOINT=server.address, MODEL_NAME="local-7b"))
    assert (await model.ainvoke("hi?")).text == "Hello there"
    assert model.invoke("hi?").text == "Hello there"
    assert [(request["model"], request["stream"]) for request in server.requests] == [("local-7b", True)] * 2


async def test_tool_calls_come_back_from_the_stream(server: OpenAIServer) -> None:
    pieces = [
        {"index": 0, "id": "call-1", "type": "function", "function": {"name": "get_application", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"application": '}},
        {"index": 0, "function": {"arguments": '"guestbook"}'}},
    ]
    server.deltas = [{"tool_calls": [piece]} for piece in pieces]
    model = chat_model(settings_of(OPENAI_ENDPOINT=server.address, OPENAI_MODEL_NAME="m"))
    reply = await model.bind_tools(argocd_tools()).ainvoke("show guestbook")
    assert [(call["name"], call["args"], call["id"]) for call in reply.tool_calls] == [
        ("get_application", {"application": "guestbook"}, "call-1")
    ]


async def test_a_failed_call_is_repeated_as_often_as_the_settings_say(server: OpenAIServer) -> None:
    server.failures = [(500, {"error": {"message": "busy"}})]
    settings = settings_of(OPENAI_ENDPOINT=server.address, OPENAI_MODEL_NAME="m", LLM_MAX_RETRIES="1")
    assert (await chat_model(settings).ainvoke("hi?")).text == "Hello there"
    assert len(server.requests) == 2


async def test_the_key_is_in_no_text_about_the_model(server: OpenAIServer) -> None:
    server.failures = [(401, {"error": {"message": "wrong key"}})]
    model = chat_model(settings_of(OPENAI_ENDPOINT=server.address, OPENAI_API_KEY=SECRET, OPENAI_MODEL_NAME="m"))
    with pytest.raises(ReadableError, match="check OPENAI_API_KEY") as raised:
        await model.ainvoke("hi?")
    assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
    for text in (repr(model), str(model), repr(raised.value), str(raised.value), str(model._identifying_params)):
        assert SECRET not in text


def test_a_server_of_ones_own_needs_no_key(server: OpenAIServer) -> None:
    model = chat_model(settings_of(OPENAI_ENDPOINT=server.address, OPENAI_MODEL_NAME="m"))
    assert model.invoke("hi?").text == "Hello there"


def test_an_agents_variables_come_before_its_manifest_and_that_before_the_rest() -> None:
    common = {"OPENAI_API_KEY": SECRET, "OPENAI_MODEL_NAME": "common"}

    def name_of(manifest: ModelChoice | None = None, **variables: str) -> str:
        model = chat_model(settings_of(**common, **variables), "my_agent", manifest)
        return model.model_name if isinstance(model, ChatOpenAI) else type(model).__name__

    of_manifest = ModelChoice(provider="openai", name="of-manifest")
    assert name_of() == "common"
    assert name_of(ModelChoice(name="of-manifest")) == "of-manifest"
    assert name_of(of_manifest) == "of-manifest"
    assert name_of(of_manifest, MY_AGENT_MODEL_NAME="of-variable") == "of-variable"
    assert name_of(ModelChoice(provider="offline")) == "OfflineChatModel"
    assert name_of(of_manifest, MY_AGENT_LLM_PROVIDER="offline") == "OfflineChatModel"
    assert name_of(OTHER_LLM_PROVIDER="offline", OTHER_MODEL_NAME="other") == "common"


def test_a_model_of_the_manifests_provider_is_not_asked_of_another_provider() -> None:
    settings = settings_of(
        OPENAI_API_KEY=SECRET,
        OPENAI_MODEL_NAME="common",
        AZURE_OPENAI_ENDPOINT="https://azure.example",
        AZURE_OPENAI_API_KEY=SECRET,
        AZURE_OPENAI_DEPLOYMENT="deployed",
        JIRA_LLM_PROVIDER="azure-openai",
    )
    model = chat_model(settings, "jira", ModelChoice(provider="openai", name="gpt"))
    assert isinstance(model, AzureChatOpenAI)
    assert model.deployment_name == "deployed"


def test_the_supervisor_is_not_touched_by_an_agents_variables() -> None:
    assert isinstance(chat_model(settings_of(JIRA_LLM_PROVIDER="openai", JIRA_MODEL_NAME="m")), OfflineChatModel)


@pytest.mark.parametrize(
    ("variables", "agent", "manifest", "expected"),
    [
        ({"OPENAI_API_KEY": SECRET}, None, None, ["LLM_PROVIDER=openai", "OPENAI_MODEL_NAME", "MODEL_NAME"]),
        ({"JIRA_LLM_PROVIDER": "openai"}, "jira", None, ["JIRA_LLM_PROVIDER=openai", "OPENAI_API_KEY"]),
        ({"JIRA_LLM_PROVIDER": "chatgpt"}, "jira", None, ["JIRA_LLM_PROVIDER=chatgpt", "anthropic-claude"]),
        ({}, "jira", ModelChoice(provider="groq"), ["agent jira", "GROQ_API_KEY"]),
        ({}, "jira", ModelChoice(provider="gork"), ["agent jira", "gork", "groq"]),
    ],
)
def test_what_is_missing_or_wrong_is_one_sentence_that_names_it(
    variables: dict[str, str], agent: str | None, manifest: ModelChoice | None, expected: list[str]
) -> None:
    with pytest.raises(SettingsError) as raised:
        chat_model(settings_of(**variables), agent, manifest)
    message = str(raised.value)
    assert [words for words in expected if words not in message] == []
    assert SECRET not in message


CONFIGURED: dict[Provider, dict[str, str]] = {
    "openai": {"OPENAI_API_KEY": SECRET},
    "azure-openai": {
        "AZURE_OPENAI_API_KEY": SECRET,
        "AZURE_OPENAI_ENDPOINT": "https://azure.example",
        "AZURE_OPENAI_DEPLOYMENT": "d",
    },
    "anthropic-claude": {"ANTHROPIC_API_KEY": SECRET},
    "aws-bedrock": {"AWS_REGION": "eu-west-1"},
    "google-gemini": {"GOOGLE_API_KEY": SECRET},
    "gcp-vertexai": {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west1"},
    "groq": {"GROQ_API_KEY": SECRET},
    "ollama": {},
    "litellm": {"LITELLM_API_KEY": SECRET},
}
PACKAGES = {
    "openai": "langchain_openai",
    "azure-openai": "langchain_openai",
    "anthropic-claude": "langchain_anthropic",
    "aws-bedrock": "langchain_aws",
    "google-gemini": "langchain_google_genai",
    "gcp-vertexai": "langchain_google_genai",
    "groq": "langchain_groq",
    "ollama": "langchain_ollama",
    "litellm": "langchain_litellm",
}
EXTRAS = {
    "openai": "openai",
    "azure-openai": "openai",
    "anthropic-claude": "anthropic",
    "aws-bedrock": "aws",
    "google-gemini": "google",
    "gcp-vertexai": "google",
    "groq": "groq",
    "ollama": "ollama",
    "litellm": "litellm",
}


def test_every_provider_that_can_be_chosen_is_covered_here() -> None:
    assert {*CONFIGURED, "offline"} == set(PROVIDERS)


@pytest.mark.parametrize("provider", CONFIGURED)
def test_a_provider_whose_package_is_missing_names_the_extra(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[provider], None)
    settings = settings_of(LLM_PROVIDER=provider, MODEL_NAME="some-model", **CONFIGURED[provider])
    with pytest.raises(SettingsError, match=f"make setup EXTRAS={EXTRAS[provider]}`"):
        chat_model(settings)


@pytest.mark.long
@pytest.mark.parametrize("provider", CONFIGURED)
def test_a_provider_whose_package_is_there_is_given_the_settings_and_keeps_its_key(provider: Provider) -> None:
    if find_spec(PACKAGES[provider]) is None:
        not_here(f"The {EXTRAS[provider]} extra is not installed: run make setup EXTRAS={EXTRAS[provider]}.")
    variables = {"LLM_PROVIDER": provider, "MODEL_NAME": "some-model", "LLM_TIMEOUT": "77", "LLM_TEMPERATURE": "0.375"}
    model = chat_model(settings_of(**variables, **CONFIGURED[provider], LLM_MAX_OUTPUT="4321"))
    held = str({name: value for name, value in vars(model).items() if "client" not in name or name == "client_kwargs"})
    assert "77" in held
    assert "0.375" in held
    assert "4321" in held
    assert SECRET not in repr(model)
    assert SECRET not in str(model)
