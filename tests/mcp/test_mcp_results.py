"""Every kind of MCP content becomes one text."""

from __future__ import annotations

import base64

import pytest
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import AnyUrl

from ai_platform_engineering.mcp.results import NOTHING, UNEXPLAINED_FAILURE, ToolAnswer, text_of, tool_answer

FIVE_BYTES = base64.b64encode(b"12345").decode()
TEN_KIB = base64.b64encode(bytes(10 * 1024)).decode()


def text(value: str) -> TextContent:
    return TextContent(type="text", text=value)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (text("v2.13.1"), "v2.13.1"),
        (text('{"items": [1,  2]}'), '{"items": [1,  2]}'),
        (ImageContent(type="image", data=FIVE_BYTES, mimeType="image/png"), "[image: image/png, 5 bytes]"),
        (AudioContent(type="audio", data=TEN_KIB, mimeType="audio/wav"), "[audio: audio/wav, 10 KiB]"),
        (
            ResourceLink(
                type="resource_link",
                name="log",
                uri=AnyUrl("file:///var/log/app.log"),
                mimeType="text/plain",
                description="what it wrote",
            ),
            "[link: file:///var/log/app.log, log, text/plain, what it wrote]",
        ),
        (ResourceLink(type="resource_link", name="log", uri=AnyUrl("file:///a")), "[link: file:///a, log]"),
        (
            EmbeddedResource(type="resource", resource=TextResourceContents(uri=AnyUrl("file:///a"), text="line\n")),
            "line\n",
        ),
        (
            EmbeddedResource(
                type="resource",
                resource=BlobResourceContents(uri=AnyUrl("file:///a.zip"), blob=FIVE_BYTES, mimeType="application/zip"),
            ),
            "[resource: file:///a.zip, application/zip, 5 bytes]",
        ),
        (
            EmbeddedResource(
                type="resource", resource=BlobResourceContents(uri=AnyUrl("file:///a.bin"), blob=FIVE_BYTES)
            ),
            "[resource: file:///a.bin, binary, 5 bytes]",
        ),
    ],
)
def test_each_kind_of_block(block: ContentBlock, expected: str) -> None:
    assert text_of([block], None) == expected


def test_blocks_are_joined_in_order() -> None:
    image = ImageContent(type="image", data=FIVE_BYTES, mimeType="image/png")
    assert text_of([text("before"), image, text("after")], None) == "before\n[image: image/png, 5 bytes]\nafter"


def test_structured_content_stands_in_for_missing_text() -> None:
    assert text_of([], {"name": "Zürich", "items": [1, 2]}) == '{"name":"Zürich","items":[1,2]}'
    assert text_of([text("")], {"a": 1}) == '{"a":1}'


def test_structured_content_is_not_repeated_beside_text() -> None:
    assert text_of([text('{"a": 1}')], {"a": 1}) == '{"a": 1}'


def test_structured_content_goes_with_an_image() -> None:
    image = ImageContent(type="image", data=FIVE_BYTES, mimeType="image/png")
    assert text_of([image], {"width": 3}) == '{"width":3}\n[image: image/png, 5 bytes]'


def test_an_empty_result_says_so() -> None:
    assert tool_answer([], None) == ToolAnswer(NOTHING)
    assert tool_answer([], None, failed=True) == ToolAnswer(
        UNEXPLAINED_FAILURE, failed=True, reason=UNEXPLAINED_FAILURE
    )


def test_nothing_is_cut() -> None:
    assert tool_answer([text("x" * 1_000_000)], None).text == "x" * 1_000_000
