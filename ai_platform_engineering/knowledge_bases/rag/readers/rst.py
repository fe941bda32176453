"""Reads reStructuredText: docutils parses it, and the tree is converted to Markdown.

Text that docutils cannot parse (too deeply nested, lines of more than 10,000 characters) is read as plain text.
"""

from __future__ import annotations

import logging
from copy import copy
from typing import Final

from docutils import nodes
from docutils.core import publish_doctree
from docutils.frontend import Values, get_default_settings
from docutils.parsers.rst import Parser
from docutils.readers import standalone
from docutils.transforms import Transform

from ai_platform_engineering.knowledge_bases.rag.readers import plain_text
from ai_platform_engineering.knowledge_bases.rag.readers.plain_text import decode
from ai_platform_engineering.knowledge_bases.rag.readers.reading import ExtractedText, RawDocument
from ai_platform_engineering.knowledge_bases.rag.readers.rst_directives import register_directives
from ai_platform_engineering.knowledge_bases.rag.readers.rst_inline import inline
from ai_platform_engineering.knowledge_bases.rag.readers.rst_markdown import markdown_of
from ai_platform_engineering.knowledge_bases.rag.readers.rst_roles import register_roles
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, title_from_name, without_markup

_logger: Final = logging.getLogger(__name__)
_MAX_LINE_LENGTH: Final = 10_000
_ABOVE_ALL_LEVELS: Final = 5
"""Higher than the level of any message: none is reported, and none stops the parser."""


class _UndefinedSubstitutions(Transform):
    """Keeps undefined substitutions such as `|version|`, which Sphinx defines. docutils fails on one in a
    definition."""

    default_priority = 210  # docutils substitutes at 220

    def apply(self) -> None:
        defined = self.document.substitution_names
        for reference in list(self.document.findall(nodes.substitution_reference)):
            if reference["refname"].lower() not in defined:
                reference.replace_self(nodes.Text(reference.rawsource))


class _RstReader(standalone.Reader):  # type: ignore[type-arg] # generic only in its stubs
    def get_transforms(self) -> list[type[Transform]]:
        return [*super().get_transforms(), _UndefinedSubstitutions]


def _settings() -> Values:
    settings = get_default_settings(Parser, _RstReader)
    settings.docinfo_xform = settings.doctitle_xform = False
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.halt_level = settings.report_level = _ABOVE_ALL_LEVELS
    settings.line_length_limit = _MAX_LINE_LENGTH
    settings.traceback = True  # otherwise docutils exits the process after an exception
    settings.warning_stream = False
    return settings


# Created once, at import: docutils changes the process-wide warning filters while it creates settings.
_SETTINGS: Final = _settings()


def read(raw: RawDocument) -> ExtractedText:
    text = decode(raw).expandtabs(8)
    if any(len(line) > _MAX_LINE_LENGTH for line in text.split("\n")):
        return plain_text.read(raw)
    try:
        register_directives(text)
        register_roles(text)
        document = publish_doctree(text, reader=_RstReader(), settings=copy(_SETTINGS))
        return ExtractedText(shortened(_title(document) or title_from_name(raw.name)), markdown_of(document))
    except MemoryError:
        raise
    except Exception:
        _logger.debug("docutils cannot parse %s.", raw.name, exc_info=True)
        return plain_text.read(raw)


def _title(document: nodes.document) -> str:
    titles = (title for title in document.findall(nodes.title) if isinstance(title.parent, nodes.section))
    return next(filter(None, map(without_markup, map(inline, titles))), "")
