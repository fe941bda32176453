"""`platform-engineer ingest`: adds the documents of a folder, a site or a sitemap to the knowledge base."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ai_platform_engineering.cli.exit_codes import INTERRUPTED, fail, refuse
from ai_platform_engineering.cli.ingest_progress import showing_progress
from ai_platform_engineering.cli.printing import print_lines, print_note
from ai_platform_engineering.knowledge_bases.rag.chunked_text import Chunker, chunk_in_thread
from ai_platform_engineering.knowledge_bases.rag.embeddings.choice import embedder_of, why_none
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import DatasourceTakenError, ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.folder import FolderSource
from ai_platform_engineering.knowledge_bases.rag.ingest.report import IngestReport
from ai_platform_engineering.knowledge_bases.rag.names import DatasourceNameError, check_datasource_name
from ai_platform_engineering.knowledge_bases.rag.readers.reading import SUFFIXES
from ai_platform_engineering.knowledge_bases.rag.source import DocumentSource
from ai_platform_engineering.knowledge_bases.rag.stores.opening import open_store
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.utils.errors import ReadableError

_OpenedSource = tuple[DocumentSource, Chunker]

_SHOWN_FAILURES: Final = 20
_INCOMPLETE: Final = "The list of documents is incomplete, so documents that no longer exist were not removed."
_MORE_PAGES: Final = "--max-pages or INGEST_MAX_PAGES raises the number of pages."


class IngestRefusedError(ReadableError):
    """Arguments or settings are invalid; nothing was ingested."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """`depth`, `max_pages` and `allow_hosts` are for web addresses, `link_base` is for folders and files."""

    source: str
    datasource: str | None = None
    depth: int | None = None
    max_pages: int | None = None
    allow_hosts: Sequence[str] = ()
    as_json: bool = False
    link_base: str | None = None


def ingest_source(options: argparse.Namespace, settings: Settings) -> int:
    ingest_options = IngestOptions(
        source=options.source,
        datasource=options.datasource,
        depth=options.depth,
        max_pages=options.max_pages,
        allow_hosts=options.allow_host,
        as_json=options.json,
        link_base=options.link_base,
    )
    try:
        return run_ingest(ingest_options, settings)
    except IngestRefusedError as error:
        return refuse(error)
    except ReadableError as error:
        return fail(error)
    except KeyboardInterrupt:
        print_note("Interrupted. Ingested documents are stored; the same command continues from there.")
        return INTERRUPTED


def run_ingest(options: IngestOptions, settings: Settings) -> int:
    """Return the exit code: 1 if a document could not be read. Raises `ReadableError` if the ingest cannot continue."""
    source, embedder = _source(options, settings), _embedder(settings)

    async def work() -> tuple[DocumentSource, IngestReport]:
        async with source as (opened, cut):
            with showing_progress(quiet=options.as_json) as progress:
                return opened, await ingest(opened, store, embedder, progress, cut)

    # Closed after the event loop, when no thread can write any more.
    with closing(open_store(settings)) as store:
        try:
            ingested, report = asyncio.run(work())
        except DatasourceTakenError as error:
            raise IngestRefusedError(str(error)) from error
    if options.as_json:
        _print_json(ingested, report)
    else:
        _print_report(ingested, report)
    return 1 if report.failed else 0


def _embedder(settings: Settings) -> Embedder | None:
    if note := why_none(settings):
        print_note(note)
    try:
        return embedder_of(settings)
    except EmbeddingsError as error:
        raise IngestRefusedError(str(error)) from error


def _source(options: IngestOptions, settings: Settings) -> AbstractAsyncContextManager[_OpenedSource]:
    if settings.rag_server_url is not None:
        raise IngestRefusedError(
            "RAG_SERVER_URL is set, so another server stores the knowledge base: run ingest where that server runs, "
            "or send documents to its REST API."
        )
    if options.datasource is not None:
        try:
            check_datasource_name(options.datasource)
        except DatasourceNameError as error:
            raise IngestRefusedError(str(error)) from error
    path = Path(options.source).expanduser()
    if path.exists():
        return _folder(options, path)
    if urlsplit(options.source).scheme.lower() not in {"http", "https"}:
        raise IngestRefusedError(
            f"There is no file or folder {options.source!r}. Name one, or a page or a sitemap at http:// or https://."
        )
    return _address(options, settings)


def _folder(options: IngestOptions, path: Path) -> AbstractAsyncContextManager[_OpenedSource]:
    if options.depth is not None or options.max_pages is not None or options.allow_hosts:
        raise IngestRefusedError(f"--depth, --max-pages and --allow-host are for addresses; {path} is not one.")
    link_base = None if options.link_base is None else _link_base(options.link_base)
    return _opened_folder(FolderSource(path, options.datasource, link_base))


def _link_base(text: str) -> str:
    # Imports httpx, which a folder does not need otherwise.
    from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url, shown

    try:
        url = page_url(text)
    except AddressError:
        url = None
    if url is None or "?" in text or "#" in text:
        raise IngestRefusedError(
            f"--link-base={shown(text)} cannot be used as the beginning of links. Give an http:// or https:// address "
            "without user name, query and fragment, for example https://git.example.com/team/docs."
        )
    return str(url)


def _address(options: IngestOptions, settings: Settings) -> AbstractAsyncContextManager[_OpenedSource]:
    if options.link_base is not None:
        raise IngestRefusedError("--link-base is for folders and files; a web page has its own address.")
    # Imports large libraries, which a folder does not need.
    from ai_platform_engineering.knowledge_bases.rag.ingest.addresses import address_source
    from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy

    policy = WebPolicy.of(settings).allowing(options.allow_hosts)
    if options.max_pages is not None:
        policy = replace(policy, max_pages=options.max_pages)
    return address_source(options.source, policy, options.datasource, depth=options.depth or 0)


@asynccontextmanager
async def _opened_folder(source: DocumentSource) -> AsyncIterator[_OpenedSource]:
    yield source, chunk_in_thread


def _print_report(source: DocumentSource, report: IngestReport) -> None:
    for failure in report.failed[:_SHOWN_FAILURES]:
        print_note(f"{one_line(failure.path)}: {one_line(failure.reason)}")
    if len(report.failed) > _SHOWN_FAILURES:
        print_note(f"and {len(report.failed) - _SHOWN_FAILURES:,} more; --json lists them all.")
    if not report.complete:
        print_note(_INCOMPLETE if isinstance(source, FolderSource) else f"{_INCOMPLETE} {_MORE_PAGES}")
    if not (report.added or report.updated or report.unchanged or report.failed):
        print_note(f"{one_line(source.origin)} has no documents of a supported type: {', '.join(SUFFIXES)}.")
    counts = {
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "removed": report.removed,
        "failed": len(report.failed),
    }
    documents = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count) or "nothing"
    print_lines(f"{source.datasource}: {documents}; {report.chunks:,} chunks in {report.seconds:.1f} s.")


def _print_json(source: DocumentSource, report: IngestReport) -> None:
    facts = {
        "datasource": source.datasource,
        "origin": source.origin,
        **asdict(report),
        "failed": [failure._asdict() for failure in report.failed],
        "seconds": round(report.seconds, 3),
    }
    sys.stdout.write(f"{json.dumps(facts)}\n")
