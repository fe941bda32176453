"""The undocumented parts of langchain-openai and openai that `compat/langchain_openai.py` uses."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from typing import Any

import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_openai import AzureChatOpenAI, ChatOpenAI

from ai_platform_engineering.compat.langchain_openai import RAW_ARGUMENTS, stream_dicts, with_complete_deltas
from tests.llm.openai_server import openai_server

CHANGED = (
    f"langchain-openai {version('langchain-openai')} or openai {version('openai')} changed a part that "
    "compat/langchain_openai.py uses"
)
CONVERT = "_convert_chunk_to_generation_chunk"
REFUSAL = {"choices": [{"index": 0, "delta": {"content": "", "refusal": "No."}}]}
CALL = {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": '}}]}}]}


def chat_model(chat_class: type[Any] = ChatOpenAI, address: str = "http://models.invalid/v1") -> Any:
    if issubclass(chat_class, AzureChatOpenAI):
        return chat_class(azure_endpoint=address, azure_deployment="m", api_key="k", api_version="2024-10-21")
    return chat_class(base_url=address, model="m", api_key="k", max_retries=0)


def converted(model: Any, chunk: dict[str, Any]) -> AIMessageChunk:
    message = getattr(model, CONVERT)(chunk, AIMessageChunk, None).message
    assert isinstance(message, AIMessageChunk), f"{CHANGED}: {CONVERT} does not return an AIMessageChunk."
    return message


@pytest.mark.parametrize("chat_class", [ChatOpenAI, AzureChatOpenAI])
def test_a_chat_model_has_the_attributes(chat_class: type[BaseChatModel]) -> None:
    model = chat_model(chat_class)
    assert isinstance(getattr(model, "root_async_client", None), openai.AsyncOpenAI), (
        f"{CHANGED}: {chat_class.__name__}.root_async_client is not an AsyncOpenAI client."
    )
    assert callable(getattr(getattr(model, "async_client", None), "create", None)), (
        f"{CHANGED}: {chat_class.__name__}.async_client has no create."
    )


@pytest.mark.parametrize("chat_class", [ChatOpenAI, AzureChatOpenAI])
def test_a_chunk_is_converted_by_a_method_with_three_arguments(chat_class: type[BaseChatModel]) -> None:
    convert = getattr(chat_class, CONVERT, None)
    assert convert is not None, f"{CHANGED}: {chat_class.__name__} has no method {CONVERT}."
    found = list(inspect.signature(convert).parameters)
    assert found == ["self", "chunk", "default_chunk_class", "base_generation_info"], (
        f"{CHANGED}: {CONVERT} takes other arguments: {', '.join(found)}."
    )


async def test_langchain_streams_through_the_replaced_client() -> None:
    """Without this, every chunk would become a typed object and a dict again."""
    seen: list[Any] = []

    class Recording(ChatOpenAI):
        def _convert_chunk_to_generation_chunk(self, chunk: dict[str, Any], *more: Any) -> Any:
            seen.append(chunk)
            return super()._convert_chunk_to_generation_chunk(chunk, *more)

    with openai_server() as server:
        model = chat_model(Recording, server.address)
        stream_dicts(model)
        text = "".join([str(chunk.text) async for chunk in model.astream("hello?")])
    assert text == "Hello there", f"{CHANGED}: a stream of dicts is read as {text!r}."
    assert seen, f"{CHANGED}: LangChain does not convert chunks with {CONVERT}."
    # The typed chunk has all fields of the API, whether the server sent them or not.
    assert [sorted(chunk) for chunk in seen] == [["choices", "created", "id", "model", "object"]] * 3, (
        f"{CHANGED}: LangChain does not stream through ChatOpenAI.async_client, so chunks are not plain dicts."
    )


async def test_the_sdk_sends_the_options_of_a_request() -> None:
    with openai_server() as server:
        model = chat_model(address=server.address)
        stream_dicts(model)
        more = {"extra_headers": {"X-Tenant": "a"}, "extra_query": {"q": "1"}, "extra_body": {"top_k": 5}}
        async for _ in model.bind(**more).astream("hello?"):
            pass
    sent = (server.headers[0].get("x-tenant"), server.paths[0].partition("?")[2], server.requests[0].get("top_k"))
    assert sent == ("a", "q=1", 5), f"{CHANGED}: AsyncOpenAI.post ignores headers, params or extra_json: {sent}."


def test_refusals_and_argument_texts_are_added_to_a_delta() -> None:
    dropped = [converted(chat_model(), chunk) for chunk in (REFUSAL, CALL)]
    assert (dropped[0].content, *(set(message.additional_kwargs) for message in dropped)) == ("", set(), set()), (
        f"{CHANGED}: {CONVERT} keeps a refusal or argument texts by itself, so they would be there twice."
    )
    model = chat_model(with_complete_deltas(ChatOpenAI))
    refusal, call = (converted(model, chunk) for chunk in (REFUSAL, CALL))
    assert (refusal.content, refusal.additional_kwargs) == ("No.", {"refusal": "No."}), f"{CHANGED}: {refusal!r}"
    assert call.additional_kwargs == {RAW_ARGUMENTS: {"0": '{"a": '}}, f"{CHANGED}: {call!r}"


def test_a_class_without_the_method_is_refused() -> None:
    class Other:
        pass

    with pytest.raises(RuntimeError, match=f"langchain-openai changed: Other has no method {CONVERT}"):
        with_complete_deltas(Other)  # type: ignore[arg-type]
