"""PDF: pages and titles, and the sentences for files that cannot be read."""

from __future__ import annotations

import io

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from ai_platform_engineering.knowledge_bases.rag.readers.reading import ExtractedText, UnreadableDocumentError, read


def written(*pages: str, title: str | None = None, password: str | None = None) -> bytes:
    """A PDF with a line of text for each line of each page."""
    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(600, 800)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        lines = "".join(f"({line}) Tj 0 -20 Td " for line in text.split("\n"))
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 50 750 Td {lines}ET".encode("latin-1"))
        page[NameObject("/Contents")] = content
    if title is not None:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, algorithm="AES-256")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def pdf(content: bytes, name: str = "manuals/user-guide.pdf") -> ExtractedText:
    return read(content, "application/pdf", name)


def test_each_page_has_its_number() -> None:
    reading = pdf(written("First page.\n# not a heading", "", "Third page.", title="The guide"))

    assert reading == ExtractedText(
        "The guide", "## Page 1\n\nFirst page.\n\\# not a heading\n\n## Page 3\n\nThird page.\n"
    )


@pytest.mark.parametrize("title", [None, "", "Microsoft Word - guide.docx", "untitled", "guide.tex", "1 2"])
def test_a_title_that_says_nothing_is_the_first_line(title: str | None) -> None:
    assert pdf(written("User guide\nText.", title=title)).title == "User guide"


def test_without_either_it_is_called_by_its_name() -> None:
    assert pdf(written("1\nText.")).title == "User guide"


def test_words_that_were_broken_are_whole_again() -> None:
    text = pdf(written("It is a manip-\nulation of the in-process\nagents that run in-\nprocess here")).text

    assert "manipulation\nof the in-process" in text
    assert "run in-process\nhere" in text


def test_a_password_is_asked_for_in_words() -> None:
    with pytest.raises(
        UnreadableDocumentError, match=r"user-guide\.pdf is encrypted: save a copy of it without a password"
    ):
        pdf(written("Secret", password="sesame"))


def test_a_file_that_only_forbids_changes_is_read() -> None:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(written("Open text."))))
    writer.encrypt("", owner_password="sesame", algorithm="AES-256")
    file = io.BytesIO()
    writer.write(file)

    assert "Open text." in pdf(file.getvalue()).text


def test_pictures_of_text_have_no_text() -> None:
    with pytest.raises(UnreadableDocumentError, match="has no text in it, only pictures of text: run OCR on it first"):
        pdf(written(""))


WHOLE = written("Some text.\nMore text.", "Second page.", title="Guide")


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7", b"<html>", WHOLE[100:], b"%PDF-1.7\n" + b"\xff" * 1000])
def test_a_broken_file_says_so(content: bytes) -> None:
    with pytest.raises(UnreadableDocumentError, match=r"is not a PDF that can be read|has no text in it"):
        pdf(content)
