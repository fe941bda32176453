"""Citations: extracts as Markdown with numbers that refer to the list of sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ai_platform_engineering.offline_model.knowledge.extracts import Extract
from ai_platform_engineering.offline_model.knowledge.passages import Passage


@dataclass(slots=True)
class Bibliography:
    """The sources of one answer, numbered in the order in which they are cited."""

    sources: dict[str, tuple[str, str]] = field(default_factory=dict)

    def number(self, extract: Extract) -> int:
        self.sources.setdefault(extract.document_id, (extract.title, extract.link))
        return list(self.sources).index(extract.document_id) + 1

    def listed(self) -> str:
        """The list of sources as Markdown, empty if there are none."""
        if not self.sources:
            return ""
        lines = [
            f"{number}. {_source_link(title, link)}" for number, (title, link) in enumerate(self.sources.values(), 1)
        ]
        return "\n".join(["Sources:", "", *lines])


def _source_link(title: str, link: str) -> str:
    title = title.replace("[", "(").replace("]", ")")
    return f"[{title}]({link})" if link.startswith(("http://", "https://")) else f"{title} (`{link}`)"


def quoted(extracts: Sequence[Extract], bibliography: Bibliography) -> str:
    """The extracts in order, each with the number of its source."""
    return "\n\n".join(_with_number(extract, bibliography.number(extract)) for extract in extracts)


def _with_number(extract: Extract, number: int) -> str:
    if extract.passages[0].kind == "procedure":
        return _procedure(extract, number)
    blocks: list[str] = []
    for passage in extract.passages:
        text = _passage_text(passage)
        is_list = passage.kind in {"item", "pointer", "row"}
        if is_list and blocks and blocks[-1].startswith("- "):
            blocks[-1] = f"{blocks[-1]}\n{text}"
        else:
            blocks.append(text)
    words = [position for position, block in enumerate(blocks) if not block.startswith("```")]
    if not words:
        heading = extract.section.split(" > ")[-1] or extract.title
        return "\n\n".join([f"{heading} [{number}]:", *blocks])
    last = words[-1]
    text = blocks[last]
    blocks[last] = f"{text[:-1]} [{number}]:" if text.endswith(":") else f"{text} [{number}]"
    return "\n\n".join(blocks)


def _procedure(extract: Extract, number: int) -> str:
    of_document = f"{extract.title}: {extract.section}" if extract.section != extract.title else extract.title
    rest = [f"This is not all of it; see [{number}] for the rest, {extract.continues}."] if extract.continues else []
    missing_words = " and ".join(f"“{word}”" for word in extract.missing_words)
    lead = f"From “{of_document}” [{number}]{f', which does not mention {missing_words}' if missing_words else ''}:"
    return "\n\n".join([lead, extract.passages[0].text, *rest])


def _passage_text(passage: Passage) -> str:
    return f"- {passage.text}" if passage.kind in {"item", "pointer", "row"} else passage.text
