"""Websites on loopback ports: pages as they are written in a test, and what was asked for."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.utils.outbound.addresses import Address


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """`endless` repeats the body, `stalls` sends no more after it. Both omit Content-Length."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False
    stalls: bool = False

    def head(self) -> bytes:
        headers = {"content-type": "text/html; charset=utf-8", "connection": "close", **self.headers}
        if not self.endless and not self.stalls:
            headers.setdefault("content-length", str(len(self.body)))
        lines = [f"HTTP/1.1 {self.status} Reason", *(f"{name}: {value}" for name, value in headers.items() if value)]
        return "\r\n".join([*lines, "", ""]).encode()


Served = str | Answer | Callable[[Asked], Answer]


@dataclass
class Website:
    """Pages by their path and query. One that is not there is not found."""

    pages: dict[str, Served]
    port: int = 0
    host: str = "127.0.0.1"
    asked: list[Asked] = field(default_factory=list)

    def url(self, path: str = "/", host: str | None = None) -> str:
        return f"http://{host or self.host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def answer(self, asked: Asked) -> Answer:
        page = self.pages.get(asked.path, Answer(status=404))
        if isinstance(page, str):
            return Answer(page.replace("{site}", self.url("")).encode())
        return page(asked) if callable(page) else page


def redirect(to: str, status: int = 302) -> Answer:
    return Answer(status=status, headers={"location": to})


def unchanging(text: str, tag: str = '"one"') -> Callable[[Asked], Answer]:
    """A page that says so when it has not changed."""

    def answer(asked: Asked) -> Answer:
        if asked.headers.get("if-none-match") == tag:
            return Answer(status=304, headers={"etag": tag, "content-length": ""})
        return Answer(text.encode(), headers={"etag": tag})

    return answer


@asynccontextmanager
async def website(
    pages: Mapping[str, Served], *, host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None
) -> AsyncIterator[Website]:
    site = Website(dict(pages), host=host)

    async def respond(request: bytes, writer: asyncio.StreamWriter) -> None:
        first, *lines = request.decode().strip().split("\r\n")
        asked = Asked(first.split()[1], dict(line.lower().split(": ", 1) for line in lines))
        site.asked.append(asked)
        answer = site.answer(asked)
        writer.write(answer.head() + answer.body)
        await writer.drain()
        while answer.endless:
            writer.write(answer.body)
            await writer.drain()
        if answer.stalls:
            await asyncio.Event().wait()

    async with talking(respond, host=host, port=port, context=context) as site.port:
        yield site


@asynccontextmanager
async def talking(
    respond: Callable[[bytes, asyncio.StreamWriter], Awaitable[None]],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    context: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """A server that answers each request as it likes; gives its port."""
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            await respond(await reader.readuntil(b"\r\n\r\n"), writer)
        writer.close()
        with suppress(asyncio.CancelledError, OSError):
            await writer.wait_closed()
        writer.transport.abort()

    server = await asyncio.start_server(handle, host, port, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        # A connection that was accepted just before takes some iterations of the loop to get its handler.
        for _ in range(5):
            await asyncio.sleep(0)
        for task in handlers:
            task.cancel()
        await asyncio.gather(*handlers)


@dataclass(frozen=True)
class OneIsPublic(WebPolicy):
    """Takes 127.0.0.1 for an address of the internet; every other one is judged as always."""

    def refuses_address(self, address: Address, host: str = "") -> str | None:
        return None if str(address) == "127.0.0.1" else WebPolicy.refuses_address(self, address, host)


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """A self-signed certificate of a name, as a server's context and as a file to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, key_file = folder / "certificate.pem", folder / "key.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file, key_file)
    return context, file
