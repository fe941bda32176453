from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ai_platform_engineering.integrations.slack_bot.markdown.passages import Code, Prose, Table, passages

LINES = (
    "```\n",
    "```py\n",
    "````\n",
    "   ```\n",
    "~~~ x\n",
    " ~~~~\n",
    "\n```a`\n",
    "\ntext\n",
    "\n",
    "# heading\n",
    "| a | b |\n",
    "|---|:-:|\n",
    "a | b\n",
    "--|--\n",
    "| 1 |\n",
    "|-|\n",
    "||\n",
    "a \\| b\n",
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=10).map("".join))
def test_code_and_tables_are_what_a_markdown_parser_finds(text: str) -> None:
    """Prose right below a table is left out: we see prose, they see a row."""
    found = [
        passage.content if isinstance(passage, Code) else len(passage.lines())
        for passage in passages(text, complete=True)
        if not isinstance(passage, Prose)
    ]
    tokens = MarkdownIt().enable("table").parse(text)
    expected = [
        token.content if token.type == "fence" else token.map[1] - token.map[0]
        for token in tokens
        if token.type in {"fence", "table_open"} and token.map
    ]
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=10).map("".join))
def test_passages_are_the_whole_text(text: str) -> None:
    assert "".join(_written(passage) for passage in passages(text, complete=True)) == text


def _written(passage: Prose | Code | Table) -> str:
    return passage.text if isinstance(passage, Prose) else passage.text[len(passage.lead) :]
