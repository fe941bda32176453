"""Reading in processes of their own, which can be ended.

A page of a few kilobytes can keep an HTML or PDF parser busy for hours, and a thread cannot be stopped. With a process
ends whatever a page made it do. One takes half a second to start, so it is kept for the pages that follow.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Any, Final, Self

from ai_platform_engineering.knowledge_bases.rag.cutting import Cut
from ai_platform_engineering.knowledge_bases.rag.readers.reading import Reading, UnreadableError
from ai_platform_engineering.knowledge_bases.rag.web.reader import Reader, ReaderError

logger = logging.getLogger(__name__)

MAX_PAGES: Final = 1000
"""That one process reads: what parsers leave behind ends with it."""
IDLE_SECONDS: Final = 30.0


class Apart:
    """For so many `seconds` a page, and for so many pages `at_once`. Processes start with the first page, and end when
    there was none for a while."""

    def __init__(self, seconds: float, at_once: int = 1) -> None:
        self._seconds = seconds
        self._places = asyncio.Semaphore(at_once)
        self._idle: dict[Reader, asyncio.TimerHandle] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def read(self, content: bytes, media_type: str, name: str, base_url: str | None) -> Reading:
        """As `readers.reading` does it."""
        made = await self._ask(content, media_type, name, base_url, cut=False)
        return Reading(made.title, made.text)

    async def cut(self, content: bytes, media_type: str, name: str, base_url: str | None) -> Cut:
        """As `ingest.cutting` does it."""
        return await self._ask(content, media_type, name, base_url, cut=True)

    async def aclose(self) -> None:
        self._closed = True
        for reader in list(self._idle):
            self._take(reader)
            await reader.end()

    async def _ask(self, content: bytes, media_type: str, name: str, base_url: str | None, *, cut: bool) -> Cut:
        task = {"media_type": media_type, "name": name, "base_url": base_url, "cut": cut, "seconds": self._seconds}
        try:
            async with self._places:
                answer = await self._answer(content, task)
        except TimeoutError:
            raise UnreadableError(
                f"{name} was not read: to turn it into text takes longer than {self._seconds:g} seconds "
                "(FETCH_URL_TIMEOUT)."
            ) from None
        except ReaderError as error:
            logger.warning("%s was not read: %s", name, error)
            raise UnreadableError(f"{name} was not read: it could not be turned into text.") from error
        return _cut(answer, name)

    async def _answer(self, content: bytes, task: dict[str, Any]) -> dict[str, Any]:
        reader = next((idle for idle in self._idle if idle.alive), None)
        if reader is None:
            reader = await Reader.start()
        else:
            self._take(reader)
        answered = False
        try:
            async with asyncio.timeout(self._seconds):
                answer = await reader.ask(content, task)
            answered = True
        finally:
            if answered and reader.pages < MAX_PAGES and not self._closed:
                self._idle[reader] = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._retire, reader)
            else:
                await reader.end()
        return answer

    def _take(self, reader: Reader) -> None:
        self._idle.pop(reader).cancel()

    def _retire(self, reader: Reader) -> None:
        del self._idle[reader]
        reader.kill()


def _cut(answer: dict[str, Any], name: str) -> Cut:
    match answer:
        case {"title": str(title), "text": str(text), "pieces": [*pieces]}:
            return Cut(title, text, tuple((section, piece) for section, piece in pieces))
        case {"problem": str(problem)}:
            raise UnreadableError(problem)
        case _:
            logger.error("%s was not read: %s", name, answer.get("trouble"))
            raise UnreadableError(f"{name} was not read: it could not be turned into text.")
