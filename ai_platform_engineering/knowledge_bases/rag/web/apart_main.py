"""The process in which a page is read: it takes a page, says what it says, and ends. It imports as little as it can."""

from __future__ import annotations

import json
import sys
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableError, read

MOST_MEMORY: Final = 2 * 1024**3


def main() -> None:
    task = json.loads(sys.stdin.buffer.readline())
    _limit(task["seconds"])
    try:
        reading = read(sys.stdin.buffer.read(), task["media_type"], task["name"], task["base_url"])
        answer = {"title": reading.title, "text": reading.text}
    except UnreadableError as error:
        answer = {"problem": str(error)}
    sys.stdout.buffer.write(json.dumps(answer).encode())


def _limit(seconds: float) -> None:
    """Also for when nobody is left to end this process."""
    try:
        import resource  # noqa: PLC0415 # not everywhere
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))


if __name__ == "__main__":
    main()
