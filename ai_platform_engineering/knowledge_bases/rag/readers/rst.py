"""reStructuredText, parsed by docutils and written as Markdown.

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

from ai_platform_engineering.knowledge_bases.rag.readers import plain
from ai_platform_engineering.knowledge_bases.rag.readers.decoding import decode
from ai_platform_engineering.knowledge_bases.rag.readers.reading import Raw, Reading
from ai_platform_engineering.knowledge_bases.rag.readers.rst_directives import register_directives
from ai_platform_engineering.knowledge_bases.rag.readers.rst_inline import inline
from ai_platform_engineering.knowledge_bases.rag.readers.rst_markdown import markdown_of
from ai_platform_engineering.knowledge_bases.rag.readers.rst_roles import register_roles
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, title_from_name, without_markup

_logger: Final = logging.getLogger(__name__)
_MAX_LINE_LENGTH: Final = 10_000
_NEVER: Final = 5
"""Above the level of every message: nothing is reported, and nothing stops the parser."""


class _UndefinedSubstitutions(Transform):
    """Leaves `|version|` and others that Sphinx defines as they are: docutils fails on one inside of a definition."""

    default_priority = 210  # substitutions are made at 220

    def apply(self) -> None:
        defined = self.document.substitution_names
        for reference in list(self.document.findall(nodes.substitution_reference)):
            if reference["refname"].lower() not in defined:
                reference.replace_self(nodes.Text(reference.rawsource))


class _Reader(standalone.Reader):  # type: ignore[type-arg] # generic only in its stubs
    def get_transforms(self) -> list[type[Transform]]:
        return [*super().get_transforms(), _UndefinedSubstitutions]


def _settings() -> Values:
    settings = get_default_settings(Parser, _Reader)
    settings.docinfo_xform = settings.doctitle_xform = False
    settings.file_insertion_enabled = settings.raw_enabled = False
    settings.halt_level = settings.report_level = _NEVER
    settings.line_length_limit = _MAX_LINE_LENGTH
    settings.traceback = True  # without it, an exception ends the process
    settings.warning_stream = False
    return settings


# Made once, with the import: docutils changes the filters of `warnings` while it makes settings, for all threads.
_SETTINGS: Final = _settings()


def read(raw: Raw) -> Reading:
    text = decode(raw).expandtabs(8)
    if any(len(line) > _MAX_LINE_LENGTH for line in text.split("\n")):
        return plain.read(raw)
    try:
        register_directives(text)
        register_roles(text)
        document = publish_doctree(text, reader=_Reader(), settings=copy(_SETTINGS))
        return Reading(shortened(_title(document) or title_from_name(raw.name)), markdown_of(document))
    except MemoryError:
        raise
    except Exception:
        _logger.debug("docutils cannot parse %s.", raw.name, exc_info=True)
        return plain.read(raw)


def _title(document: nodes.document) -> str:
    titles = (title for title in document.findall(nodes.title) if isinstance(title.parent, nodes.section))
    return next(filter(None, map(without_markup, map(inline, titles))), "")
