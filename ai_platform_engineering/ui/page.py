"""Serves the built page: `GET /` and its files. They contain no data, so they need no authentication.

Addresses in the page are relative: behind a proxy it works under any path that ends with a slash.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

BUILT: Final = Path(__file__).parent / "built"

_ENCODINGS: Final = {".br": "br", ".gz": "gzip"}
# Not from `mimetypes`: its answers depend on the files of the system, and browsers refuse scripts of another type.
_MEDIA_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_REFUSED: Final = re.compile(r"q=0(\.0*)?")
_INDEX: Final = "index.html"
_DIAGRAM: Final = "diagram.html"
_HASHED: Final = "/assets/"
"""Files with a hash of their content in their name."""
_DIAGRAM_FILES: Final = "/assets/diagram/"

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
# A diagram is drawn in a frame with an origin of its own. Mermaid needs inline styles; the frame loads its scripts and
# nothing else, and `frame-src` of the page's policy keeps it from going to another host.
_DIAGRAM_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_MISSING: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Platform Engineer</title>
<h1>The supervisor is running, but its web page was not built</h1>
<p>Building it needs Node.js 20 or newer. Run <code>make setup</code> where Node.js is installed or PyPI can be
reached, then restart the supervisor.</p>
<p>Without the page, use the terminal: <code>platform-engineer chat --url</code> and this address.</p>
</html>
"""


@dataclass(frozen=True, slots=True)
class _File:
    """One file of the page, in all encodings; `None` is the plain one. A path is read when a browser asks for it."""

    media_type: str
    variants: Mapping[str | None, bytes | Path]
    etag: str
    policy: str | None
    is_hashed: bool
    # Browsers load modules of another origin, which that of the frame for diagrams is, only with permission.
    is_for_all_origins: bool

    async def response(self, request: Request) -> Response:
        headers = {
            **_HEADERS,
            "ETag": self.etag,
            "Vary": "Accept-Encoding",
            "Cache-Control": "public, max-age=31536000, immutable" if self.is_hashed else "no-cache",
        }
        if self.is_for_all_origins:
            headers["Access-Control-Allow-Origin"] = "*"
        if self.policy is not None:
            headers["Content-Security-Policy"] = self.policy
        known = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
        if not known.isdisjoint({self.etag, self.etag.removeprefix("W/"), "*"}):
            return Response(status_code=304, headers=headers)
        encoding = _accepted(request.headers.get("accept-encoding", ""), self.variants)
        if encoding is not None:
            headers["Content-Encoding"] = encoding
        content = self.variants[encoding]
        if isinstance(content, Path):
            try:
                content = await asyncio.to_thread(content.read_bytes)
            except FileNotFoundError:  # another version was installed meanwhile
                return Response(status_code=404, headers=_HEADERS)
        return Response(content, media_type=self.media_type, headers=headers)


class Page:
    """The files of the page. `paths` are those that are served."""

    def __init__(self, built: Path = BUILT) -> None:
        self._files = _read(built)
        self.paths: frozenset[str] = frozenset({"/", *self._files})

    @property
    def is_built(self) -> bool:
        return f"/{_INDEX}" in self._files

    def routes(self) -> Sequence[Route]:
        pages = {path: file for path, file in self._files.items() if not file.is_hashed}
        return [
            Route("/", _serve(self._files[f"/{_INDEX}"]) if self.is_built else _missing, methods=["GET"]),
            *(Route(path, _serve(file), methods=["GET"]) for path, file in pages.items()),
            # One route: a hundred would take longer to build than the rest of the page.
            Route(f"{_HASHED}{{name:path}}", self._serve_hashed, methods=["GET"]),
        ]

    async def _serve_hashed(self, request: Request) -> Response:
        file = self._files.get(f"{_HASHED}{request.path_params['name']}")
        if file is None:
            raise HTTPException(status_code=404)
        return await file.response(request)


def _serve(file: _File) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def serve(request: Request) -> Response:
        return await file.response(request)

    return serve


async def _missing(_request: Request) -> Response:
    headers = {**_HEADERS, "Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(_MISSING, status_code=404, headers=headers)


def _read(built: Path) -> dict[str, _File]:
    """Pages are read now, so that a new version changes nothing before a restart; all other files on demand."""
    found = {f"{folder}/{name}" for folder, _, names in os.walk(built) for name in names}
    files = {}
    for name in sorted(found):
        file = Path(name)
        if file.suffix in _ENCODINGS:
            continue
        variants: dict[str | None, Path] = {None: file}
        variants |= {encoding: Path(name + ending) for ending, encoding in _ENCODINGS.items() if name + ending in found}
        path = f"/{file.relative_to(built).as_posix()}"
        is_hashed = path.startswith(_HASHED)
        version = path.encode() if is_hashed else file.read_bytes()
        files[path] = _File(
            media_type=_MEDIA_TYPES.get(file.suffix, "application/octet-stream"),
            variants=variants if is_hashed else {encoding: of.read_bytes() for encoding, of in variants.items()},
            # Weak, because it is the same for all encodings.
            etag=f'W/"{hashlib.sha256(version).hexdigest()[:16]}"',
            policy={f"/{_INDEX}": _POLICY, f"/{_DIAGRAM}": _DIAGRAM_POLICY}.get(path),
            is_hashed=is_hashed,
            is_for_all_origins=path.startswith(_DIAGRAM_FILES),
        )
    return files


def _accepted(header: str, variants: Mapping[str | None, object]) -> str | None:
    """The smallest variant that the browser accepts."""
    wanted = [part.split(";") for part in header.lower().replace(" ", "").split(",")]
    accepted = {name for name, *parameters in wanted if not any(map(_REFUSED.fullmatch, parameters))}
    return next((encoding for encoding in variants if encoding in accepted), None)
