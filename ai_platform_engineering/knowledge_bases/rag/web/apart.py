"""Reading in a process of its own, which can be ended.

A page of a few kilobytes can keep an HTML or PDF parser busy for hours, and a thread cannot be stopped. The process has
none of the variables of this one, and with it ends whatever a page made it do.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers.reading import Reading, UnreadableError

_COMMAND: Final = (sys.executable, "-P", "-X", "utf8", "-m", f"{__package__}.apart_main")


async def read_apart(content: bytes, media_type: str, name: str, base_url: str, seconds: float) -> Reading:
    """As `read` does it, for so long at most."""
    task = json.dumps({"media_type": media_type, "name": name, "base_url": base_url, "seconds": seconds})
    process = await asyncio.create_subprocess_exec(
        *_COMMAND,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(seconds):
            answer, _ = await process.communicate(task.encode() + b"\n" + content)
    except TimeoutError:
        raise UnreadableError(
            f"{name} was not read: to turn it into text takes longer than {seconds:g} seconds (FETCH_URL_TIMEOUT)."
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _reading(answer if process.returncode == 0 else b"", name)


def _reading(answer: bytes, name: str) -> Reading:
    match json.loads(answer or b"{}"):
        case {"title": str(title), "text": str(text)}:
            return Reading(title, text)
        case {"problem": str(problem)}:
            raise UnreadableError(problem)
        case _:
            raise UnreadableError(f"{name} was not read: it could not be turned into text.")
