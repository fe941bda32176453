"""What is read, by which name or header, and how Markdown and plain text are."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ai_platform_engineering.knowledge_bases.rag.readers.reading import (
    SUFFIXES,
    ExtractedText,
    UnreadableDocumentError,
    media_type_of,
    read,
)


def markdown(text: str | bytes, name: str = "guides/remote-agents.md") -> ExtractedText:
    return read(text.encode() if isinstance(text, str) else text, "text/markdown", name)


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("docs/a.md", None, "text/markdown"),
        ("A.HTML", None, "text/html"),
        ("a.rst", None, "text/x-rst"),
        ("a.txt", None, "text/plain"),
        ("a.pdf", None, "application/pdf"),
        ("logo.png", None, None),
        ("Makefile", None, None),
        (".md", None, None),
        ("https://example.com/docs/", "text/html; charset=ISO-8859-2", "text/html; charset=iso-8859-2"),
        ("https://example.com/docs/", 'Text/HTML; charset="utf-8"', "text/html; charset=utf-8"),
        ("https://example.com/docs/a%2Emd?raw=1#top", None, "text/markdown"),
        ("https://example.com/a.md?x=/b.pdf", "text/plain; charset=utf-8", "text/markdown; charset=utf-8"),
        ("https://example.com/a.md", "application/octet-stream", "text/markdown"),
        ("https://example.com/README", "text/plain", "text/plain"),
        ("https://example.com/a.pdf", "text/html", "text/html"),
        ("https://example.com/a.md", "image/png", None),
        ("https://example.com/a.bin", "application/octet-stream", None),
        ("https://example.com/page", "application/xhtml+xml", "text/html"),
        ("https://example.com/page", "; charset=", None),
    ],
)
def test_kinds_are_known_by_header_or_name(name: str, declared: str | None, expected: str | None) -> None:
    assert media_type_of(name, declared) == expected


def test_every_suffix_is_read() -> None:
    assert {media_type_of(f"a{suffix}") for suffix in SUFFIXES} == set(SUFFIXES.values())


def test_another_kind_is_refused_by_name() -> None:
    with pytest.raises(UnreadableDocumentError, match=r"a\.png is image/png, which is not read: Markdown, HTML"):
        read(b"", "image/png", "a.png")


@pytest.mark.parametrize("kind", ["text/markdown", "text/plain", "text/x-rst"])
def test_an_empty_file_is_read_as_empty(kind: str) -> None:
    assert read(b" \n\n", kind, "docs/remote-agents.md") == ExtractedText("Remote agents", "")


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("Grüße – “hi”".encode(), "text/plain"),
        ("\ufeffGrüße – “hi”".encode(), "text/plain; charset=iso-8859-1"),
        ("Grüße – “hi”".encode("cp1252"), "text/plain"),
        ("Grüße – “hi”".encode("cp1252"), "text/plain; charset=iso-8859-1"),
        ("Grüße – “hi”".encode("cp1252"), "text/plain; charset=utf-8"),
        ("\ufeffGrüße – “hi”".encode("utf-16-le"), "text/plain"),
        ("\ufeffGrüße – “hi”".encode("utf-16-be"), "text/plain"),
        ("\ufeffGrüße – “hi”".encode("utf-32-le"), "text/plain"),
        ("Grüße – “hi”".encode("utf-16-le"), "text/plain; charset=utf-16-le"),
        ("Grüße – “hi”".encode(), "text/plain; charset=no-such"),
        ("Grüße – “hi”".encode(), "text/plain; charset=unicode_escape"),
        ("Grüße – “hi”".encode(), "text/plain; charset=base64"),
    ],
)
def test_text_is_decoded(content: bytes, media_type: str) -> None:
    assert read(content, media_type, "a.txt").text == "Grüße – “hi”\n"


def test_other_alphabets_are_decoded_as_declared() -> None:
    assert read("Привет".encode("koi8-r"), "text/plain; charset=KOI8-R", "a.txt").text == "Привет\n"


def test_what_is_not_text_says_so() -> None:
    with pytest.raises(UnreadableDocumentError, match=r"docs/a\.md is not text"):
        markdown(b"\x89PNG\r\n\x1a\n\x00\x00\x00", "docs/a.md")


def test_line_ends_are_plain() -> None:
    assert markdown("# A\r\n\r\ntext\rmore").text == "# A\n\ntext\nmore\n"


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("---\ntitle: Remote agents\nweight: 2\n---\n# Heading\n", "Remote agents", "# Heading\n"),
        ('---\ntags: [a]\ntitle: "Quoted: yes"\n---\n\ntext\n', "Quoted: yes", "text\n"),
        ("---\ntitle: 'It''s'\n...\ntext\n", "It's", "text\n"),
        ('+++\ntitle = "TOML"\n+++\ntext\n', "TOML", "text\n"),
        ("\ufeff---\ntitle: With a mark\n---\ntext\n", "With a mark", "text\n"),
        ("---\nweight: 2\n---\n# Heading\n", "Heading", "# Heading\n"),
        ("---\n---\n# Heading\n", "Heading", "# Heading\n"),
        ("---\nauthor:\n  title: Doctor\n---\n# Heading\n", "Heading", "# Heading\n"),
        ("<!-- Copyright -->\n---\ntitle: After\n---\n<!-- SPDX\nx -->\ntext\n", "After", "text\n"),
    ],
)
def test_front_matter_gives_the_title_and_goes(text: str, title: str, rest: str) -> None:
    assert markdown(text) == ExtractedText(title, rest)


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nText between rules: it stays.\n\n---\n\nMore.\n",
        "---\ntitle: never closed\n\ntext\n",
        "Text.\n\n---\ntitle: not at the top\n---\n",
    ],
)
def test_what_is_no_front_matter_stays(text: str) -> None:
    assert markdown(text).text == text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Intro.\n\n## `serve` and [more](x.md) ##\n", "serve and more"),
        ("Title\n=====\n\ntext\n", "Title"),
        ("```sh\n# comment\n```\n\n# Real\n", "Real"),
        ("~~~~\n```\n# comment\n~~~\n~~~~\n# Real\n", "Real"),
        ('<p><img src="x"></p>\n<h1 align="center">The <b>Tool</b></h1>\n\n## Features\n', "The Tool"),
        ("# First\n\n<h1>Second</h1>\n", "First"),
        ("# ![logo](x.svg)\n\n# Words\n", "Words"),
        ("Only text, no heading.\n", "Remote agents"),
        ("| a |\n|---|\n\ntext\n", "Remote agents"),
    ],
)
def test_the_title_is_the_first_heading_else_the_name(text: str, title: str) -> None:
    assert markdown(text).title == title


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("README.md", "README"),
        ("guides/deploy/index.md", "Deploy"),
        ("api_reference.v2.md", "Api reference.v2"),
        ("https://example.com/docs/getting-started/", "Getting started"),
        ("https://example.com/a%20b.html", "A b"),
        ("https://example.com/", "example.com"),
        ("https://example.com/index.html", "example.com"),
        ("---.md", "---.md"),
    ],
)
def test_a_name_makes_a_title(name: str, title: str) -> None:
    assert markdown("text", name).title == title


def test_a_title_is_one_short_line() -> None:
    title = markdown("# " + "long words " * 100).title

    assert len(title) <= 200
    assert title.endswith("words…")


def test_pictures_inside_of_the_text_are_left_out() -> None:
    text = markdown(f"See ![chart](data:image/png;base64,{'iVBORw0KGgo' * 100}) here.\n").text

    assert text == "See ![chart](data:) here.\n"


def test_plain_text_has_no_headings_but_its_first_line_as_title() -> None:
    reading = read(b"\n*** Release notes ***\n\n# comment\n  ## also\n#!/bin/sh\n", "text/plain", "NEWS.txt")

    assert reading == ExtractedText(
        "*** Release notes ***", "*** Release notes ***\n\n\\# comment\n  \\## also\n#!/bin/sh\n"
    )


def test_plain_text_without_a_short_first_line_is_called_by_its_name() -> None:
    assert read(b"word " * 100, "text/plain", "release-notes.txt").title == "Release notes"


def test_what_a_kind_needs_is_imported_when_it_is_read() -> None:
    heavy = ["bs4", "docutils", "markdownify", "pypdf", "markdown_it"]
    program = (
        "import sys\n"
        "from ai_platform_engineering.knowledge_bases.rag.readers.reading import read\n"
        "read(b'# A', 'text/markdown', 'a.md')\n"
        f"print([name for name in {heavy} if name in sys.modules])\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_only_comments_before_the_text_are_left_out() -> None:
    text = "<!-- a --> text <!-- b -->\nmore\n"

    assert markdown(f"<!-- licence\nof it -->\n\n{text}").text == text
