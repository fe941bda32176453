"""Reads PDF: the text of each page, below a heading with the page number."""

from __future__ import annotations

import logging
import re
from io import BytesIO
from typing import Final

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from ai_platform_engineering.knowledge_bases.rag.readers.plain_text import without_headings
from ai_platform_engineering.knowledge_bases.rag.readers.reading import (
    ExtractedText,
    RawDocument,
    UnreadableDocumentError,
)
from ai_platform_engineering.knowledge_bases.rag.readers.titles import MAX_TITLE_LENGTH, shortened, title_from_name

_logger: Final = logging.getLogger(__name__)
_GENERATED_TITLE: Final = re.compile(
    r"^untitled\b|^microsoft (?:word|powerpoint)\b|\.(?:docx?|pptx?|tex|dvi|indd|odt)$", re.I
)
_BROKEN_WORD: Final = re.compile(r"([a-z]{2,})-\n([a-z]{2,}\S*)[ \n]?")


def read(raw: RawDocument) -> ExtractedText:
    try:
        file = PdfReader(BytesIO(raw.content))
        if file.is_encrypted and not file.decrypt(""):
            raise FileNotDecryptedError("a password is needed")
        pages = [page.extract_text() for page in file.pages]
        declared_title = file.metadata.title if file.metadata else None
    except (FileNotDecryptedError, DependencyError):
        raise UnreadableDocumentError(f"{raw.name} is encrypted: save a copy of it without a password.") from None
    except RecursionError:
        raise UnreadableDocumentError(f"{raw.name} is not a PDF that can be read: it is nested too deeply.") from None
    except Exception as error:
        # The library raises arbitrary exceptions for broken files.
        _logger.debug("%s cannot be read.", raw.name, exc_info=not isinstance(error, PyPdfError))
        raise UnreadableDocumentError(f"{raw.name} is not a PDF that can be read: the file is broken.") from None
    texts = [_lines(page) for page in pages]
    if not any(texts):
        raise UnreadableDocumentError(f"{raw.name} has no text in it, only pictures of text: run OCR on it first.")
    return ExtractedText(
        _title(declared_title, texts[0]) or title_from_name(raw.name),
        "\n\n".join(f"## Page {number}\n\n{without_headings(text)}" for number, text in enumerate(texts, 1) if text),
    )


def _title(declared: object, first_page: str) -> str:
    """The title in the metadata, unless a program generated it. Otherwise the first line."""
    if isinstance(declared, str) and any(map(str.isalpha, declared)) and not _GENERATED_TITLE.search(declared):
        return shortened(declared)
    first = first_page.partition("\n")[0]
    return first if any(map(str.isalpha, first)) and len(first) <= MAX_TITLE_LENGTH else ""


def _lines(text: str) -> str:
    """Join words that were hyphenated at a line end, unless the hyphenated form occurs elsewhere."""
    lines = "\n".join(line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")).strip()

    def join(broken: re.Match[str]) -> str:
        hyphenated = f"{broken[1]}-{broken[2]}"
        return f"{hyphenated if hyphenated in lines else broken[1] + broken[2]}\n"

    return _BROKEN_WORD.sub(join, lines)
