"""The process in which pages are read: it takes a page, says what it says, and waits for the next.

A page is a line of JSON and as many bytes as the line says; an answer is JSON after its length. The process ends when
nobody is left to send it pages, also while it reads one.
"""

from __future__ import annotations

import json
import os
import select
import sys
import traceback
from threading import Thread
from typing import Any, Final

from ai_platform_engineering.knowledge_bases.rag.cutting import cut
from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableError, read

try:
    import resource
except ImportError:  # not everywhere
    resource = None  # type: ignore[assignment] # it is asked for before it is used

MAX_MEMORY: Final = 2 * 1024**3


def main() -> None:
    pages = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a library prints is no answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory()
    Thread(target=_end_with_the_caller, args=(pages.fileno(),), daemon=True).start()
    answers.write(b"\n")
    answers.flush()
    while line := pages.readline():
        task = json.loads(line)
        _limit_time(task["seconds"])
        answer = json.dumps(_answer(pages.read(task["bytes"]), task), ensure_ascii=False).encode(errors="replace")
        answers.write(len(answer).to_bytes(8, "big") + answer)
        answers.flush()


def _answer(content: bytes, task: dict[str, Any]) -> dict[str, Any]:
    asked = (content, task["media_type"], task["name"], task["base_url"])
    try:
        if task["cut"]:
            made = cut(*asked)
            return {"title": made.title, "text": made.text, "pieces": made.pieces}
        reading = read(*asked)
        return {"title": reading.title, "text": reading.text, "pieces": ()}
    except UnreadableError as error:
        return {"problem": str(error)}
    except MemoryError:
        # What is left of the memory is for nothing more than the end.
        raise
    except Exception:
        return {"trouble": traceback.format_exc()}


def _end_with_the_caller(pages: int) -> None:
    if hasattr(select, "poll"):
        poll = select.poll()
        # Not for what comes, only for the end, which is told also when nothing is asked for.
        poll.register(pages, 0)
        poll.poll()
        os._exit(0)


def _limit_memory() -> None:
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def _limit_time(seconds: float) -> None:
    """For the next page. The caller looks at the clock; this is for when it is gone and even that is not noticed."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 2, most))


if __name__ == "__main__":
    main()
