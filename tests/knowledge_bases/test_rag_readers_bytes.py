"""Any bytes at all give a reading that can be stored, or a sentence."""

from __future__ import annotations

import io
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfWriter

from ai_platform_engineering.knowledge_bases.rag.chunking import chunks_of
from ai_platform_engineering.knowledge_bases.rag.documents import Document
from ai_platform_engineering.knowledge_bases.rag.readers.reading import (
    MediaType,
    UnreadableDocumentError,
    media_type_of,
    read,
)

KINDS = get_args(MediaType)
CHARSETS = ["utf-8", "utf-16", "utf-7", "iso-8859-1", "koi8-r", "shift_jis", "idna", "zlib", "undefined", "\x00", "ü"]

HTML = (
    *(
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<ul>",
        "<li>",
        "<table>",
        "<tr>",
        "<td>",
        "</table>",
        "<pre>",
        "<code>",
        "</pre>",
    ),
    *(
        "<h1>",
        "</h1>",
        "<a href='",
        "'>",
        '<img alt="x" src="data:,">',
        "<main>",
        "<nav>",
        "</nav>",
        "<form>",
        "<br>",
        "<ol",
    ),
    *(
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE",
        "<?xml",
        "&#xD800;",
        "&#0;",
        "&amp",
        "<script>",
        "</script>",
        "<svg>",
    ),
    *(
        "<title>",
        "<base href=//[>",
        "<template>",
        "<aside class=note>",
        "<li value=9>",
        "<math-renderer>",
        "<h99>",
        "text ",
    ),
)
RST = (
    *(
        "=====\n",
        "Title\n",
        ".. note::",
        " text\n",
        "::\n",
        "\n",
        "   ",
        "* ",
        "1. ",
        "| ",
        "``",
        "`x`_ ",
        ":role:`",
        "`",
        "+-+\n",
    ),
    *(
        "=== ===\n",
        ".. code:: x\n",
        ".. |a| replace:: b\n",
        "|a|",
        ".. _a: b\n",
        ":field: x\n",
        ">>> ",
        ".. list-table::\n",
        "- - x\n",
    ),
    *(
        ".. csv-table:: x\n",
        ' "a, b\n',
        "..\n",
        ".. [1] x\n",
        "__ x\n",
        "\t",
        "\\ ",
        ".. figure:: x\n",
        ".. class:: a\n",
        "---\n",
    ),
)
MARKDOWN = (
    "---\n",
    "title: x\n",
    "# ",
    "```",
    "\n",
    "text ",
    "<!--",
    "-->",
    "| a |\n|--|\n",
    "<h1>",
    "</h1>",
    "+++\n",
    "`",
    "[",
    "](",
)


def readable(content: bytes, media_type: str) -> None:
    try:
        reading = read(content, media_type, "docs/a.x", "https://example.com/a/")
    except UnreadableDocumentError as error:
        sentence = str(error)
    else:
        sentence = reading.title
        assert "\x00" not in reading.text
        reading.text.encode()
        chunks_of(Document("d", "docs/a.x", reading.title, reading.text, "l"))
    assert sentence.strip()
    assert "\n" not in sentence
    sentence.encode()


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(KINDS), st.none() | st.sampled_from(CHARSETS))
def test_any_bytes(content: bytes, kind: str, charset: str | None) -> None:
    readable(content, kind if charset is None else f"{kind}; charset={charset}")


@pytest.mark.long
@pytest.mark.parametrize(("kind", "tokens"), [("text/html", HTML), ("text/x-rst", RST), ("text/markdown", MARKDOWN)])
def test_any_mixture_of_markup(kind: str, tokens: tuple[str, ...]) -> None:
    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.sampled_from(tokens) | st.text(max_size=5), max_size=40).map("".join))
    def check(markup: str) -> None:
        readable(markup.encode(), kind)

    check()


def blank_pdf() -> bytes:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


PDF = blank_pdf()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(PDF)), st.binary(max_size=10), st.integers(0, 30))
def test_any_damage_to_a_pdf(at: int, inserted: bytes, removed: int) -> None:
    readable(PDF[:at] + inserted + PDF[at + removed :], "application/pdf")


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.none() | st.text(max_size=40))
def test_any_name_and_header(name: str, declared: str | None) -> None:
    kind = media_type_of(name, declared)

    assert kind is None or kind.split(";")[0] in KINDS
    if kind is not None:
        readable(b"text", kind)
