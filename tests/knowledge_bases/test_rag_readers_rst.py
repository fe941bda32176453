"""reStructuredText: its blocks and its inline markup as Markdown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.readers.reading import ExtractedText, read


def rst(source: str, name: str = "docs/remote-agents.rst") -> ExtractedText:
    return read(source.encode(), "text/x-rst", name)


def text(source: str) -> str:
    return rst(source).text


def test_adornments_are_levels_in_the_order_they_come() -> None:
    source = "=====\nGuide\n=====\n\nIntro.\n\nInstall\n=======\n\nFrom source\n-----------\n\nRun\n===\n\nText.\n"

    assert rst(source) == ExtractedText(
        "Guide", "# Guide\n\nIntro.\n\n## Install\n\n### From source\n\n## Run\n\nText.\n"
    )


def test_a_title_loses_its_markup() -> None:
    assert rst("The ``serve`` :ref:`command <serve>`\n================================\n").title == "The serve command"


def test_without_a_title_it_is_called_by_its_name() -> None:
    assert rst("Text.\n").title == "Remote agents"
    assert rst(".. topic:: Contents\n\n   Text.\n").title == "Remote agents"


def test_a_line_between_paragraphs_is_a_line() -> None:
    assert text("One.\n\n----------\n\nTwo.\n") == "One.\n\n---\n\nTwo.\n"


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        ("Run::\n\n  ls\n\n  pwd\n\nDone.\n", "Run:\n\n```\nls\n\npwd\n```\n\nDone.\n"),
        ("Run ::\n\n  ls\n", "Run\n\n```\nls\n```\n"),
        ("::\n\n  ls\n", "```\nls\n```\n"),
        ("Said::\n\n> a\n> b\n\nDone.\n", "Said:\n\n```\n> a\n> b\n```\n\nDone.\n"),
        (".. code-block:: yaml\n   :linenos:\n\n   a: 1\n     b\n", "```yaml\na: 1\n  b\n```\n"),
        (".. code:: sh\n\n   cat <<E\n   ```\n   E\n", "````sh\ncat <<E\n```\nE\n````\n"),
        (".. sourcecode:: python\n   :caption: An example\n\n   x = 1\n", "An example\n\n```python\nx = 1\n```\n"),
        (".. parsed-literal::\n\n   a **b**\n", "```\na b\n```\n"),
        (".. math:: a^2\n", "```math\na^2\n```\n"),
        (">>> 1 + 1\n2\n\nText.\n", "```pycon\n>>> 1 + 1\n2\n```\n\nText.\n"),
    ],
)
def test_code(source: str, markdown: str) -> None:
    assert text(source) == markdown


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        ("``a_b_c`` and ```tick```\n", "`a_b_c` and `` `tick` ``\n"),
        (":class:`~package.module.Class` or :func:`!run`\n", "`Class` or `run`\n"),
        (":ref:`the guide <guide-label>` and :doc:`/install`\n", "the guide and /install\n"),
        (":variable:`CMAKE_POLICY_CMP<NNNN>`\n", "`CMAKE_POLICY_CMP<NNNN>`\n"),
        (":envvar:`PATH`, :py:meth:`a.b <a.b.c>`\n", "`PATH`, a.b\n"),
        ("See `the site <https://example.com/a_b>`_ now.\n", "See [the site](https://example.com/a_b) now.\n"),
        ("See `<https://example.com>`__ now.\n", "See <https://example.com> now.\n"),
        ("See `the page <other.html>`_ now.\n", "See the page now.\n"),
        (
            "See `the site`_ and site_.\n\n.. _the site: https://example.com/1\n.. _site: https://example.com/2\n",
            "See [the site](https://example.com/1) and [site](https://example.com/2).\n",
        ),
        ("See `it <the site_>`_.\n\n.. _the site: https://example.com/1\n", "See [it](https://example.com/1).\n"),
        ("A snake_case_ name and trailing_ one.\n", "A snake_case_ name and trailing_ one.\n"),
        (
            "Version |release| of |unknown|.\n\n.. |release| replace:: 2.0 *beta*\n",
            "Version 2.0 *beta* of |unknown|.\n",
        ),
        ("|long|\n\n.. |long| replace::\n   several ``words``\n   more\n", "several `words`\nmore\n"),
        ("T\n=\n\n|file|\n\n.. |file| replace:: a-|version|-b\n", "# T\n\na-|version|-b\n"),
        ("|link|\n\n.. |link| replace:: see :variable:`HOME`\n", "see `HOME`\n"),
        (".. role:: red\n\nSee :red:`this` and `that`:kbd:.\n", "See `this` and `that`.\n"),
        ("Read :rfc:`2119`.\n", "Read [RFC 2119](https://tools.ietf.org/html/rfc2119.html).\n"),
        ("Escaped \\*stars\\*.\n", "Escaped *stars*.\n"),
        ("Built: |badge|\n\n.. |badge| image:: https://example.com/b.svg\n   :alt: passing\n", "Built: passing\n"),
        (
            "Noted [1]_ and [CIT2002]_.\n\n.. [1] The note\n   goes on.\n",
            "Noted [1] and [CIT2002].\n\n[1] The note\ngoes on.\n",
        ),
        ("re\\ ``structured``\\ Text\n", "re`structured`Text\n"),
        ("*emphasis* **strong** `default`\n", "*emphasis* **strong** `default`\n"),
        ("#hashtag\n# not a heading\n", "#hashtag\n\\# not a heading\n"),
    ],
)
def test_inline_markup(source: str, markdown: str) -> None:
    assert text(source) == markdown


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        ("* one\n* two\n  more\n\n* three\n\n  para\n", "- one\n\n- two\n  more\n\n- three\n\n  para\n"),
        ("1. one\n2. two\n", "1. one\n2. two\n"),
        ("#. one\n#. two\n\n   * deep\n", "1. one\n\n2. two\n\n   - deep\n"),
        ("- Run::\n\n    ls\n", "- Run:\n\n  ```\n  ls\n  ```\n"),
        ("term\n  What it is.\n\n``other``\n  More.\n", "- term\n\n  What it is.\n\n- `other`\n\n  More.\n"),
        (":orphan:\n\n:Author: Someone\n:Date: today\n", "- Author: Someone\n- Date: today\n"),
        ("b. two\nc. three\n", "2. two\n3. three\n"),
        ("size : int\n  In bytes.\n", "- size : int\n\n  In bytes.\n"),
        ("-a, --all    Everything.\n--to=PLACE   Where.\n", "- `-a`, `--all`: Everything.\n- `--to=PLACE`: Where.\n"),
        ("| one\n| two\n\n| three\n", "one  \ntwo\n\nthree\n"),
        ("Text.\n\n   A quotation.\n\n   -- Someone\n", "Text.\n\n> A quotation.\n>\n> — Someone\n"),
    ],
)
def test_lists_and_their_like(source: str, markdown: str) -> None:
    assert text(source) == markdown


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        (".. note:: Mind\n   the gap.\n", "> **Note:** Mind\n> the gap.\n"),
        (".. warning::\n\n   * a\n", "> **Warning:**\n>\n> - a\n"),
        (".. admonition:: Read *this*\n\n   Text.\n", "> **Read *this*:** Text.\n"),
        (".. versionadded:: 3.2\n", "> **Added in version 3.2.**\n"),
        (".. deprecated:: 3.2 Use :func:`x`.\n", "> **Deprecated since version 3.2:** Use `x`.\n"),
        (".. function:: run(a,\n                  b)\n   :async:\n\n   Runs.\n", "`run(a,`\n`b)`\n\nRuns.\n"),
        (".. py:autoclass:: a.B\n   :members:\n\n   Notes.\n", "`a.B`\n\nNotes.\n"),
        (".. tab:: Linux\n\n   Text.\n", "**Linux**\n\nText.\n"),
        (".. some-unknown::\n   :option: x\n\n   Text.\n", "Text.\n"),
        (".. unknown::\n   :option: x\n   Text.\n", "Text.\n"),
        (".. class:: Run(a)\n\n   Runs.\n", "`Run(a)`\n\nRuns.\n"),
        (".. class:: wide\n\n   Text.\n", "Text.\n"),
        (".. only:: html\n\n   Part\n   ====\n\n   Text.\n", "# Part\n\nText.\n"),
        (".. tip::\n\n   Part\n   ====\n\n   Text.\n", "> **Tip:**\n>\n> # Part\n>\n> Text.\n"),
        (".. image:: a.png\n   :alt: The graph\n", "![The graph](a.png)\n"),
        (".. figure:: a.png\n   :alt: The graph\n\n   Caption.\n", "![The graph](a.png)\n\nCaption.\n"),
        (".. toctree::\n   :maxdepth: 2\n\n   install\n   usage\n\nText.\n", "Text.\n"),
        (".. A comment\n   that goes on.\n\nText.\n", "Text.\n"),
        (".. _label:\n\nText.\n", "Text.\n"),
        ("..\n   Licence.\n\nText.\n", "Text.\n"),
        ("Text.\n\n..\n\n   Quoted.\n", "Text.\n\n> Quoted.\n"),
        (".. |x| image:: a.png\n   :alt: a\n\nText.\n", "Text.\n"),
    ],
)
def test_directives(source: str, markdown: str) -> None:
    assert text(source) == markdown


TABLE = "| Name | Meaning |\n|---|---|\n| `a` | one \\| two |\n| b | three four |\n"
SIMPLE = """\
======  ==========
Name    Meaning
======  ==========
``a``   one | two
b       three
        four
======  ==========
"""
GRID = """\
+-------+-----------+
| Name  | Meaning   |
+=======+===========+
| ``a`` | one | two |
+-------+-----------+
| b     | three     |
|       | four      |
+-------+-----------+
"""
LIST = """\
.. list-table::
   :header-rows: 1

   * - Name
     - Meaning
   * - ``a``
     - one | two
   * - b
     - three
       four
"""
CSV = """\
.. csv-table::
   :header: Name, Meaning

   ``a``, one | two
   b, "three four"
"""


@pytest.mark.parametrize("source", [SIMPLE, GRID, LIST, CSV], ids=["simple", "grid", "list", "csv"])
def test_tables(source: str) -> None:
    assert text(source) == TABLE


def test_a_cell_over_several_places_has_its_text_in_the_first() -> None:
    source = "+---+---+\n| a | b |\n+---+---+\n| over  |\n+---+---+\n| c | d |\n|   +---+\n|   | e |\n+---+---+\n"

    assert text(source) == "| a | b |\n|---|---|\n| over |  |\n| c | d |\n|  | e |\n"


def test_cells_are_one_line() -> None:
    source = (
        "+-------+---+\n| * one | b |\n| * two |   |\n|       |   |\n"
        "| Run:: |   |\n|       |   |\n|   ls  |   |\n|   pwd |   |\n+-------+---+\n"
    )

    assert text(source) == "| - one - two Run: `ls pwd` | b |\n|---|---|\n"


@pytest.mark.parametrize(
    ("source", "markdown"),
    [
        ("A\n=\n\nB\n-\n\nC\n=\n\nD\n~\n\nText.\n", "# A\n\n## B\n\n# C\n\n**D**\n\nText.\n"),
        ("+---+\n| a\n+---+\n", "```\n+---+\n| a\n+---+\n```\n"),
        ('.. csv-table::\n\n   a, "b\n', '```\n.. csv-table::\n\n   a, "b\n```\n'),
    ],
    ids=["level", "table", "csv"],
)
def test_broken_markup_is_kept_as_it_is_written(source: str, markdown: str) -> None:
    assert text(source) == markdown


def test_no_other_file_becomes_part_of_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret,words\n")
    (tmp_path / "docutils.conf").write_text("[general]\nfile_insertion_enabled: yes\nraw_enabled: yes\n")
    monkeypatch.chdir(tmp_path)
    inclusions = (
        *(f".. include:: {secret}", f".. literalinclude:: {secret}", f".. csv-table::\n   :file: {secret}"),
        *(f".. raw:: html\n   :file: {secret}", f".. csv-table::\n   :url: {secret.as_uri()}"),
        *(".. raw:: html\n\n   <b>secret</b>", ".. role:: html(raw)\n   :format: html"),
    )

    assert text("\n\n".join((*inclusions, "Text."))) == "Text.\n"


def test_one_document_defines_nothing_for_the_next() -> None:
    text(".. role:: py(code)\n   :language: python\n\n.. default-role:: strong\n\n.. |x| replace:: y\n")

    assert text("`a` :py:`b` |x|\n") == "`a` `b` |x|\n"


@pytest.mark.parametrize("source", ["Title\n=====\n\n" + "word " * 3000, "* " * 500 + "word"], ids=["long", "deep"])
def test_a_document_that_docutils_refuses_is_read_as_plain_text(source: str) -> None:
    assert text(source) == f"{source}\n"


def test_nothing_that_people_read_is_lost_in_deep_nesting() -> None:
    source = "".join(f"{'  ' * depth}* level{depth}\n\n" for depth in range(60))

    assert text(source).split() == [word for depth in range(60) for word in ("-", f"level{depth}")]


@pytest.mark.long
@pytest.mark.parametrize(
    "source",
    [
        "".join(f"{' ' * depth}x\n" for depth in range(1500)),
        "* " * 5000,
        "`" * 20_000,
        "`a <" * 10_000,
        ":a:" * 10_000,
        "|a" * 20_000,
        ".. " * 10_000,
        ".. _a:" * 10_000,
        "= " * 10_000,
        "=\n" * 10_000,
        "+-+\n" * 5000,
        "===  ===\n" * 3000,
        "x_ " * 10_000,
        "a:" * 20_000 + "\n",
        ".. |a| replace:: x\n" * 2000 + "|a| " * 2000,
    ],
    ids=lambda source: repr(source[:8]),
)
def test_hostile_text_takes_no_more_than_moments(source: str) -> None:
    started = time.process_time()

    text(source)

    assert time.process_time() - started < 10
