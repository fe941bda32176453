"""PDF: the text of each page under a heading that says which page it is."""

from __future__ import annotations

import logging
from io import BytesIO
from typing import Final

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from ai_platform_engineering.knowledge_bases.rag.readers.plain import without_headings
from ai_platform_engineering.knowledge_bases.rag.readers.reading import Raw, Reading, UnreadableError
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, title_from_name

_logger: Final = logging.getLogger(__name__)


def read(raw: Raw) -> Reading:
    try:
        file = PdfReader(BytesIO(raw.content))
        if file.is_encrypted and not file.decrypt(""):
            raise FileNotDecryptedError("a password is needed")
        pages = [page.extract_text() for page in file.pages]
        named = file.metadata.title if file.metadata else None
    except (FileNotDecryptedError, DependencyError):
        raise UnreadableError(f"{raw.name} is encrypted: save a copy of it without a password.") from None
    except RecursionError:
        raise UnreadableError(f"{raw.name} is not a PDF that can be read: it is nested too deeply.") from None
    except Exception as error:
        # What is wrong with a broken file comes out of the library as whatever it stumbled over.
        _logger.debug("%s cannot be read.", raw.name, exc_info=not isinstance(error, PyPdfError))
        raise UnreadableError(f"{raw.name} is not a PDF that can be read: the file is broken.") from None
    sections = [
        f"## Page {number}\n\n{without_headings(text.strip())}"
        for number, text in enumerate(map(_lines, pages), 1)
        if text.strip()
    ]
    if not sections:
        raise UnreadableError(f"{raw.name} has no text in it, only pictures of text: run OCR on it first.")
    title = named.strip() if isinstance(named, str) else ""
    return Reading(shortened(title or title_from_name(raw.name)), "\n\n".join(sections))


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
