from __future__ import annotations

import time

import pytest

from ai_platform_engineering.knowledge_bases.rag.names import (
    DatasourceNameError,
    check_datasource_name,
    nearest_ids,
    without_chunk,
)

KNOWN = ["docs:guides/deploy.md", "docs:guides/develop.md", "docs:README.md", "site:https://example.com/deploy"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("guides/deploy.md", ["docs:guides/deploy.md"]),
        ("deploy.md", ["docs:guides/deploy.md"]),
        ("other:guides/DEPLOY.md#4", ["docs:guides/deploy.md"]),
        ("docs:guides/deplyo.md", ["docs:guides/deploy.md", "docs:guides/develop.md"]),
        ("https://example.com/deploy", ["site:https://example.com/deploy"]),
        ("docs:", []),
        ("", []),
        ("zebra", []),
    ],
)
def test_the_ids_that_may_have_been_meant(written: str, meant: list[str]) -> None:
    assert nearest_ids(written, KNOWN) == meant


def test_a_large_knowledge_base_is_not_looked_through_letter_by_letter() -> None:
    known = [f"docs:a/rather/long/path/of/page-{number}.md" for number in range(100_000)]
    began = time.process_time()
    nearest_ids("docs:a/rather/long/path/of/pge", known)
    assert time.process_time() - began < 5


def test_the_id_of_a_chunk_names_its_document() -> None:
    assert without_chunk("docs:a.md#12") == "docs:a.md"
    assert without_chunk("docs:c#.md") == "docs:c#.md"


@pytest.mark.parametrize("name", ["a", "docs", "example.com", "A-b_c.1", "0"])
def test_names_of_datasources(name: str) -> None:
    assert check_datasource_name(name) == name


@pytest.mark.parametrize("name", ["", "a:b", ".a", "-a", "a b", "a/b", "ä", "a\n", "x" * 101])
def test_names_that_no_datasource_has(name: str) -> None:
    with pytest.raises(DatasourceNameError):
        check_datasource_name(name)
