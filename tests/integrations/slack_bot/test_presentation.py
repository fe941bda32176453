from __future__ import annotations

import csv
import io
import re
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ai_platform_engineering.integrations.slack_bot.thread_view.presentation import Presented, present
from tests.integrations.slack_bot.markdown import short_texts, texts

LONG_CODE = "x = 1\n" * 81
TABLE = "| Name | Age |\n|---|--:|\n"


def shown(raw: str) -> str:
    """What is shown while it is being written."""
    return present(raw, complete=False).text


def is_beginning(first: Presented, second: Presented) -> bool:
    return second.text.startswith(first.text) and second.files[: len(first.files)] == first.files


@settings(max_examples=200, deadline=None)
@given(short_texts)
@example("a | b\n-|-\n1 | 2\n")
@example("- ```\nx\n```\n<!here> @here")
def test_what_was_shown_is_never_taken_back(raw: str) -> None:
    now, at_last = present(raw, complete=False), present(raw, complete=True)
    for end in range(len(raw) + 1):
        before = present(raw[:end], complete=False)
        assert is_beginning(before, now)
        assert is_beginning(before, at_last)


@settings(max_examples=200, deadline=None)
@given(texts, st.data())
def test_files_are_never_taken_back(raw: str, data: st.DataObject) -> None:
    before = present(raw[: data.draw(st.integers(0, len(raw)))], complete=False)
    assert is_beginning(before, present(raw, complete=False))
    assert is_beginning(before, present(raw, complete=True))


@settings(max_examples=150, deadline=None)
@given(texts)
def test_mentions_are_inactive(raw: str) -> None:
    text = present(raw, complete=True).text
    assert not re.search(r"<!(?i:channel|here|everyone|subteam)|<@[UW]", text)


@settings(max_examples=150, deadline=None)
@given(texts)
def test_short_texts_are_shown_as_they_are(raw: str) -> None:
    presented = present(raw, complete=True)
    if not presented.files:
        assert presented.text.replace("\u2060", "") == raw.replace("\u2060", "")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("", ""),
        ("Half a sent", "Half a sent"),
        ("It is `", "It is `"),
        ("Look:\n", "Look:\n"),
        ("Look:\n`", "Look:\n"),
        ("Look:\n``", "Look:\n"),
        ("Look:\n``x", "Look:\n``x"),
        ("Look:\n  ", "Look:\n"),
        ("Look:\n  ```py", "Look:\n"),
        ("Look:\n```inline` code", "Look:\n```inline` code"),
        ("Look:\n```py\nx = 1\n", "Look:\n"),
        ("Look:\n```py\nx = 1\n```", "Look:\n"),
        ("Look:\n```py\nx = 1\n```\n", "Look:\n```py\nx = 1\n```\n"),
        ("Look:\n````md\n```\n````\n", "Look:\n````md\n```\n````\n"),
        ("~~~\n```\n", ""),
        ("~~~\n```\n~~~~\nEnd", "~~~\n```\n~~~~\nEnd"),
        ("- ```py", "- "),
        ("- ```py\n  x\n  ```\n- y", "- ```py\n  x\n  ```\n- y"),
        ("1. a\n\n      ```\n      x\n      ```\n", "1. a\n\n      ```\n      x\n      ```\n"),
        ("```py\n    ```\n", ""),
        ("~~~~~~~~~~~~~\nx", "~~~~~~~~~~~~~\nx"),
        (" " * 17 + "```\nx", " " * 17 + "```\nx"),
    ],
)
def test_code_is_shown_when_it_is_closed(raw: str, text: str) -> None:
    assert shown(raw) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("All:\n| Na", "All:\n"),
        ("All:\n| Name | Age |\n", "All:\n"),
        ("All:\n| Name | Age |\n|--", "All:\n"),
        ("All:\n| Name | Age |\n| x", "All:\n| Name | Age |\n"),
        ("All:\n| Name | Age |\nx", "All:\n| Name | Age |\nx"),
        (f"All:\n{TABLE}| Ann | 41 |\n", "All:\n"),
        (f"All:\n{TABLE}| Ann | 41 |\n\n", f"All:\n{TABLE}| Ann | 41 |\n\n"),
        (f"{TABLE}| Ann | 41 |\n```a|b\n", f"{TABLE}| Ann | 41 |\n"),
        ("Name | Ag", "Name | Ag"),
        ("Name | Age\n-", "Name | Age\n"),
        ("Name | Age\n- x", "Name | Age\n- x"),
        ("Name | Age\n-|-\nAnn | 41\n", "Name | Age\n"),
        ("Name | Age\n-|-\nAnn | 41\nEnd\n", "Name | Age\n-|-\nAnn | 41\nEnd\n"),
        ("| a | b |\n|---|\n\n", "| a | b |\n|---|\n\n"),
    ],
)
def test_tables_are_shown_when_something_else_follows(raw: str, text: str) -> None:
    assert shown(raw) == text


@pytest.mark.parametrize("raw", ["Look:\n```py\nx = 1", "Look:\n``", TABLE, f"{TABLE}| Ann", "<!", "all @her", "  "])
def test_a_complete_text_is_shown_whole(raw: str) -> None:
    assert present(raw, complete=True) == Presented(raw, ())


def test_long_code_becomes_a_file() -> None:
    presented = present(f"Run this:\n```python\n{LONG_CODE}```\nDone.\n", complete=False)
    assert presented.text == (
        "Run this:\n\n_The code is in the file_ `answer-1.py` _(81 lines, 486 characters)._\n\nDone.\n"
    )
    (file,) = presented.files
    assert (file.name, file.content) == ("answer-1.py", LONG_CODE)


def test_files_are_told_in_paragraphs_of_their_own() -> None:
    code = f"```\n{LONG_CODE}```\n"
    text = present(f"{code}{code}\n{code}", complete=True).text
    assert re.sub(r"_The.*_", "_", text) == "_\n\n_\n\n_\n"


def test_code_that_never_closes_may_be_long_too() -> None:
    presented = present(f"```\n{LONG_CODE}", complete=True)
    assert [file.content for file in presented.files] == [LONG_CODE]


def test_files_in_lists_keep_the_list() -> None:
    code = "".join(f"   {line}\n" for line in LONG_CODE.splitlines())
    presented = present(f"1. ```sh\n{code}   ```\n2. Then\n   ```sh\n{code}   ```\n3. Done", complete=True)
    assert re.sub(r" _\(.*", "", presented.text) == (
        "1. _The code is in the file_ `answer-1.sh`\n\n2. Then\n\n   _The code is in the file_ `answer-2.sh`\n\n3. Done"
    )
    assert [file.content for file in presented.files] == [LONG_CODE, LONG_CODE]


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ("", "answer-1.txt"),
        ("Python", "answer-1.py"),
        ("yaml:values.yaml", "answer-1.yaml"),
        ("{.rust}", "answer-1.rs"),
        ("c++ linenos", "answer-1.cpp"),
        ("hcl", "answer-1.hcl"),
        ("../../etc/passwd", "answer-1.txt"),
        ("an_unheard_language", "answer-1.txt"),
    ],
)
def test_files_are_named_by_language(info: str, name: str) -> None:
    (file,) = present(f"~~~{info}\n{LONG_CODE}~~~\n", complete=True).files
    assert file.name == name


@pytest.mark.parametrize(
    ("code", "is_file"),
    [("x = 1\n" * 80, False), ("x = 1\n" * 81, True), ("x" * 2_900 + "\n", False), ("x" * 3_001 + "\n", True)],
)
def test_how_much_code_is_read_in_a_message(code: str, is_file: bool) -> None:
    assert bool(present(f"```\n{code}```\n", complete=True).files) == is_file


def test_a_long_table_becomes_a_spreadsheet_below_its_first_rows() -> None:
    rows = [f'| Ann "{age}", \\| Bob | {age} |\n' for age in range(31)]
    presented = present(f"All:\n\n{TABLE}{''.join(rows)}\nDone.", complete=False)
    assert presented.text == (
        f"All:\n\n{TABLE}{''.join(rows[:3])}\n"
        "_The whole table is in the file_ `table-1.csv` _(31 rows, 2 columns)._\n\nDone."
    )
    (file,) = presented.files
    assert file.name == "table-1.csv"
    assert list(csv.reader(io.StringIO(file.content, newline=""))) == [
        ["Name", "Age"],
        *([f'Ann "{age}", | Bob', str(age)] for age in range(31)),
    ]


def test_cells_that_are_too_many_are_kept() -> None:
    presented = present(f"{TABLE}{'| 1 | 2 | 3 |' + chr(10)}" + "| 1 |\n" * 30, complete=True)
    (file,) = presented.files
    assert list(csv.reader(io.StringIO(file.content, newline="")))[1:3] == [["1", "2", "3"], ["1"]]


@pytest.mark.parametrize(
    ("columns", "rows", "is_file"),
    [(2, 30, False), (2, 31, True), (10, 1, False), (11, 1, True), (10, 30, False), (10, 90, True)],
)
def test_how_much_of_a_table_is_read_in_a_message(columns: int, rows: int, is_file: bool) -> None:
    lines = ["| h " * columns, "|---" * columns, *(["| c " * columns] * rows)]
    assert bool(present("\n".join(lines), complete=True).files) == is_file


def test_of_a_wide_table_only_the_header_is_shown() -> None:
    header = "a" + " | b" * 10
    raw = f"{header}\n{'-|' * 11}\n" + "1" + " | 2" * 10 + "\n\n"
    assert present(raw, complete=False).text == (
        f"{header}\n\n_The whole table is in the file_ `table-1.csv` _(1 row, 11 columns)._\n\n"
    )


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("Hi <!channel>", "Hi <\u2060!channel>"),
        ("<!here|here> <!everyone>", "<\u2060!here|here> <\u2060!everyone>"),
        ("<!subteam^S1|@ops>", "<\u2060!subteam^S1|@ops>"),
        ("<@U1> and <@W1|ann>", "<\u2060@U1> and <\u2060@W1|ann>"),
        ("@here, @Channel and (@everyone)", "@\u2060here, @\u2060Channel and (@\u2060everyone)"),
        ("ops@here.com", "ops@here.com"),
        ("<https://example.com|here> <!-- no --> <!date^1^{date}|x>",) * 2,
        ("```\n<!here> @here/sdk\n```\n", "```\n<\u2060!here> @here/sdk\n```\n"),
        (f"{TABLE}| <@U1> | @here |\n\n", f"{TABLE}| <\u2060@U1> | @\u2060here |\n\n"),
    ],
)
def test_mentions_look_the_same_and_are_inactive(raw: str, text: str) -> None:
    assert present(raw, complete=True).text == text


@pytest.mark.parametrize("end", ["<", "<!", "<@", "<!ch", "@", "@h", "@everyon", "<!subtea"])
def test_an_end_that_may_become_a_mention_waits(end: str) -> None:
    assert shown(f"Hello {end}") == "Hello "


@pytest.mark.parametrize("text", ["5 > 3 < 4", "ops@here", "<@u", "@heroes", "<!-- "])
def test_an_end_that_is_no_mention_does_not_wait(text: str) -> None:
    assert shown(text) == text


def test_files_are_as_they_were_written() -> None:
    (file,) = present(f"```\n<!here> @here\n{LONG_CODE}```\n", complete=True).files
    assert file.content == f"<!here> @here\n{LONG_CODE}"


@pytest.mark.serial
@pytest.mark.parametrize("line", ["\n", "`x`\n", "    value = compute(something)\n"])
@pytest.mark.parametrize("end", ["", "```\nAnd so on"], ids=["open", "closed"])
def test_a_look_at_a_very_long_block_is_cheap(line: str, end: str) -> None:
    """It is looked at whenever something was written."""
    raw = "Here it is.\n\n```python\n" + line * (200_000 // len(line)) + end
    assert min(_seconds(raw) for _ in range(5)) < 0.005


def _seconds(raw: str) -> float:
    began = process_time()
    present(raw, complete=False)
    return process_time() - began
