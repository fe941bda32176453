"""PDF: the text of each page under a heading that says which page it is."""

from __future__ import annotations

import logging
import re
from io import BytesIO
from typing import Final

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from ai_platform_engineering.knowledge_bases.rag.readers.plain import without_headings
from ai_platform_engineering.knowledge_bases.rag.readers.reading import Raw, Reading, UnreadableError
from ai_platform_engineering.knowledge_bases.rag.readers.titles import MAX_TITLE_LENGTH, shortened, title_from_name

_logger: Final = logging.getLogger(__name__)
_FILLED_IN: Final = re.compile(
    r"^untitled\b|^microsoft (?:word|powerpoint)\b|\.(?:docx?|pptx?|tex|dvi|indd|odt)$", re.I
)
_BROKEN_WORD: Final = re.compile(r"([a-z]{2,})-\n([a-z]{2,}\S*)[ \n]?")


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
    texts = [_lines(page) for page in pages]
    if not any(texts):
        raise UnreadableError(f"{raw.name} has no text in it, only pictures of text: run OCR on it first.")
    return Reading(
        _title(named, texts[0]) or title_from_name(raw.name),
        "\n\n".join(f"## Page {number}\n\n{without_headings(text)}" for number, text in enumerate(texts, 1) if text),
    )


def _title(named: object, first_page: str) -> str:
    """What the file says of itself, if that is not just what the program that wrote it filled in."""
    if isinstance(named, str) and any(map(str.isalpha, named)) and not _FILLED_IN.search(named):
        return shortened(named)
    first = first_page.partition("\n")[0]
    return first if any(map(str.isalpha, first)) and len(first) <= MAX_TITLE_LENGTH else ""


def _lines(text: str) -> str:
    """Words that were broken at the end of a line are whole again, unless they have their hyphen elsewhere too."""
    lines = "\n".join(line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")).strip()

    def whole(broken: re.Match[str]) -> str:
        hyphened = f"{broken[1]}-{broken[2]}"
        return f"{hyphened if hyphened in lines else broken[1] + broken[2]}\n"

    return _BROKEN_WORD.sub(whole, lines)
