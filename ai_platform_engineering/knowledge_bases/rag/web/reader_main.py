"""The main module of a reader process: it reads a page from stdin, writes its text to stdout, and waits for the next.

A request is a line of JSON, followed by the number of bytes that it names. The process sends a line feed when it has
imported the libraries for the page, then the response: its length and JSON. It exits when the parent closes the pipe,
also while it reads a page.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import sys
import traceback
from contextlib import suppress
from threading import Thread
from typing import Any, Final

from ai_platform_engineering.knowledge_bases.rag.chunked_text import chunk_content
from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableDocumentError, load_reader, read

try:
    import resource
except ImportError:  # not on all platforms
    resource = None  # type: ignore[assignment] # it is checked before each use

MAX_MEMORY: Final = 2 * 1024**3
_CHUNKING: Final = "ai_platform_engineering.knowledge_bases.rag.chunking"


def main() -> None:
    requests = sys.stdin.buffer
    responses = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Output that a library prints must not mix with the responses.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory()
    Thread(target=_exit_with_parent, args=(requests.fileno(),), daemon=True).start()
    responses.write(b"\n")
    responses.flush()
    while line := requests.readline():
        request = json.loads(line)
        _load_libraries(request)
        responses.write(b"\n")
        responses.flush()
        _limit_time(request["seconds"])
        response = json.dumps(_read(requests.read(request["bytes"]), request), ensure_ascii=False)
        encoded = response.encode(errors="replace")
        responses.write(len(encoded).to_bytes(8, "big") + encoded)
        responses.flush()


def _load_libraries(request: dict[str, Any]) -> None:
    # If it fails, reading the page fails again and reports the error.
    with suppress(Exception):
        load_reader(request["media_type"])
        if request["chunk"]:
            importlib.import_module(_CHUNKING)


def _read(content: bytes, request: dict[str, Any]) -> dict[str, Any]:
    arguments = (content, request["media_type"], request["name"], request["base_url"])
    try:
        if request["chunk"]:
            chunked = chunk_content(*arguments)
            return {"title": chunked.title, "text": chunked.text, "pieces": chunked.pieces}
        extracted = read(*arguments)
        return {"title": extracted.title, "text": extracted.text, "pieces": ()}
    except UnreadableDocumentError as error:
        return {"problem": str(error)}
    except MemoryError:
        # The process is at its limit, so it ends.
        raise
    except Exception:
        return {"traceback": traceback.format_exc()}


def _exit_with_parent(requests: int) -> None:
    if hasattr(select, "poll"):
        poll = select.poll()
        # No event is requested: poll() always reports a hang-up.
        poll.register(requests, 0)
        poll.poll()
        os._exit(0)


def _limit_memory() -> None:
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def _limit_time(seconds: float) -> None:
    """Limit the CPU time for the next page. The parent has a timeout; this ends the process if the parent is gone and
    the closed pipe was not noticed."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 2, hard_limit))


if __name__ == "__main__":
    main()
