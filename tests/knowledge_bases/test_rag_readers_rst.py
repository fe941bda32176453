"""reStructuredText: its blocks and its inline markup as Markdown."""

from __future__ import annotations

import time

import pytest

from ai_platform_engineering.knowledge_bases.rag.readers.reading import Reading, read


def rst(source: str, name: str = "docs/remote-agents.rst") -> Reading:
    return read(source.encode(), "text/x-rst", name)


def text(source: str) -> str:
    return rst(source).text


def test_adornments_are_levels_in_the_order_they_come() -> None:
    source = "=====\nGuide\n=====\n\nIntro.\n\nInstall\n=======\n\nFrom source\n-----------\n\nRun\n===\n\nText.\n"

    assert rst(source) == Reading("Guide", "# Guide\n\nIntro.\n\n## Install\n\n### From source\n\n## Run\n\nText.\n")


def test_a_title_loses_its_markup() -> None:
    assert rst("The ``serve`` :ref:`command <serve>`\n================================\n").title == "The serve command"


def test_without_a_title_it_is_called_by_its_name() -> None:
    assert rst("Text.\n").title == "Remote agents"


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
        (".. parsed-literal::\n\n   a **b**\n", "```\na **b**\n```\n"),
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
        ("|long|\n\n.. |long| replace::\n   several ``words``\n   more\n", "several `words` more\n"),
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
        ("| one\n| two\n", "one  \ntwo\n"),
        ("Text.\n\n   A quotation.\n", "Text.\n\n> A quotation.\n"),
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
        (".. only:: html\n\n   Text.\n", "Text.\n"),
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


def test_a_table_with_cells_over_several_columns_is_shown_as_it_is_drawn() -> None:
    source = "+---+---+\n| a | b |\n+---+---+\n| over  |\n+-------+\n"

    assert text(source) == f"```\n{source}```\n"


def test_nothing_that_people_read_is_lost_in_deep_nesting() -> None:
    source = "".join(f"{'  ' * depth}* level{depth}\n\n" for depth in range(60))

    assert all(f"level{depth}" in text(source) for depth in range(60))


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
