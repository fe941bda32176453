"""A pool of reader processes, which convert untrusted content to text.

A page of a few kilobytes can keep an HTML or PDF parser busy for hours, and a thread cannot be stopped. A process can
be killed. It takes half a second to start, so it is kept for the next pages.
"""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Any, Final, Self

from ai_platform_engineering.knowledge_bases.rag.chunked_text import ChunkedText
from ai_platform_engineering.knowledge_bases.rag.readers.reading import ExtractedText, UnreadableDocumentError
from ai_platform_engineering.knowledge_bases.rag.web.reader_process import ReaderError, ReaderProcess

logger = logging.getLogger(__name__)

MAX_PAGES: Final = 1000
"""Pages of one process, which is then replaced. This limits the memory that parsers leak."""
IDLE_SECONDS: Final = 30.0


class ReaderPool:
    """At most `size` pages are read in parallel, each for at most `timeout` seconds. Processes start on demand and end
    after `IDLE_SECONDS` without work."""

    def __init__(self, timeout: float, size: int = 1) -> None:
        self._timeout = timeout
        self._slots = asyncio.Semaphore(size)
        self._idle: dict[ReaderProcess, asyncio.TimerHandle] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def read(self, content: bytes, media_type: str, name: str, base_url: str | None) -> ExtractedText:
        """The same as `readers.reading.read`."""
        chunked = await self._request(content, media_type, name, base_url, chunk=False)
        return ExtractedText(chunked.title, chunked.text)

    async def chunk(self, content: bytes, media_type: str, name: str, base_url: str | None) -> ChunkedText:
        """The same as `chunked_text.chunk_content`."""
        return await self._request(content, media_type, name, base_url, chunk=True)

    async def aclose(self) -> None:
        self._closed = True
        readers = list(self._idle)
        # All at once: a timer could end one while another one is waited for.
        for reader in readers:
            self._take(reader)
        for reader in readers:
            await reader.end()

    async def _request(
        self, content: bytes, media_type: str, name: str, base_url: str | None, *, chunk: bool
    ) -> ChunkedText:
        request = {"media_type": media_type, "name": name, "base_url": base_url, "chunk": chunk}
        try:
            async with self._slots:
                response = await self._send(content, request)
        except TimeoutError:
            raise UnreadableDocumentError(
                f"{name} was not read: converting it to text takes longer than {self._timeout:g} seconds "
                "(FETCH_URL_TIMEOUT)."
            ) from None
        except ReaderError as error:
            logger.warning("%s was not read: %s", name, error)
            raise UnreadableDocumentError(f"{name} was not read: it could not be converted to text.") from error
        return _chunked_text(response, name)

    async def _send(self, content: bytes, request: dict[str, Any]) -> dict[str, Any]:
        reader = next((idle for idle in self._idle if idle.alive), None)
        if reader is None:
            reader = await ReaderProcess.start()
        else:
            self._take(reader)
        succeeded = False
        try:
            response = await reader.send(content, request, self._timeout)
            succeeded = True
        finally:
            if succeeded and reader.pages < MAX_PAGES and not self._closed:
                self._idle[reader] = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._retire, reader)
            else:
                await reader.end()
        return response

    def _take(self, reader: ReaderProcess) -> None:
        self._idle.pop(reader).cancel()

    def _retire(self, reader: ReaderProcess) -> None:
        del self._idle[reader]
        reader.kill()


def _chunked_text(response: dict[str, Any], name: str) -> ChunkedText:
    match response:
        case {"title": str(title), "text": str(text), "pieces": [*pieces]}:
            return ChunkedText(title, text, tuple((section, piece) for section, piece in pieces))
        case {"problem": str(problem)}:
            raise UnreadableDocumentError(problem)
        case _:
            logger.error("%s was not read: %s", name, response.get("traceback"))
            raise UnreadableDocumentError(f"{name} was not read: it could not be converted to text.")
