"""Markdown as models write it, and worse: for tests of everything that reads it."""

from __future__ import annotations

from hypothesis import strategies as st

_MARKS = ("```", "````", "~~~", "`", "``", "~", "|", "<", "@", "!", "-", ":", "\\", "\r")
_LINES = (
    "```\n",
    "```python\n",
    "```a`b\n",
    "~~~~ yaml title=x\n",
    "- ```sh\n",
    "      ```\n",
    "| a | b |\n",
    "|---|:-:|\n",
    "| 1 | 2 | 3 \\| 4 |\n",
    "a | b\n",
    "-|-\n",
    "# Heading\n",
    "- item\n",
    "12. item\n",
    "Some words. And more.\n",
    "\r\n",
    "\n",
    "\n\n",
)
_MENTIONS = ("<!channel>", "<!HERE|here>", "<!subteam^S1>", "<@U123>", "<@w>", "@everyone", "x@here.com", "<!-- -->")
_LONG = ("x = 1\n" * 81, "y" * 3001 + "\n", "| 1 | 2 |\n" * 31, "| long " * 11 + "|\n" + "|-" * 11 + "|\n")
_GRAPHEMES = ("👩‍👩‍👧", "🇩🇪🇫🇷", "e\u0301", "👍🏽", "\ud83d\ude00", "\u2028", "字。")

short_fragments = st.sampled_from((*_MARKS, *_LINES, *_MENTIONS, *_GRAPHEMES, " ", "    ", "\t", "word"))
short_texts = st.lists(short_fragments, max_size=14).map("".join) | st.text(max_size=20)
fragments = short_fragments | st.sampled_from(_LONG)
texts = st.lists(fragments, max_size=14).map("".join)
