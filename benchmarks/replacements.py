"""The section about own code in place of a library in docs/performance.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.rows import Row, by_name

_SECTION: Final = """\
## Own code in place of a library

The CPU that own code saves each time it is used, and the share of a whole request with the model provider over HTTP
(the first table of this page) that uses it once. A client of ours and one of the library ask the same server; the CPU
of the server is not counted.

{table}

- `joined_hooks` joins LangChain's middlewares into one. It saves 9 % of the function calls of a request; of the CPU 2 %
  with 1 stream and 11 % with 8 (2026-11-17, with the middlewares one by one in its place).
- `own_transport` stays because it saves 5 % or more of a request with 32 at once.
- `streamable_http` saves less. It stays for its behaviour: in the client of the MCP SDK an HTTP error in answer to one
  call ends the transport, and with it all calls in flight; here it fails that one call. The SDK's client also has no
  headers of a single call, which state the user of the call, and does not say whether a lost call was sent.
- `tool_server` saves little per call. It stays because it saves the import of FastMCP at every start: 0.3 s of CPU
  (2026-11-18), a fifth of the start.

{run}
"""


@dataclass(frozen=True, slots=True)
class _Replacement:
    own: str
    library: str
    use: str
    subject: str
    """Whose request it is a part of."""


_REPLACEMENTS: Final = {
    "delegation": _Replacement("`own_transport`, `stream_json`", "client of a2a-sdk", "delegation", "remote"),
    "http-call": _Replacement("`streamable_http`", "client of the MCP SDK", "tool call over HTTP", "product"),
    "memory-call": _Replacement("`tool_server`", "FastMCP in memory", "tool call in memory", "product"),
}


def section(rows: Sequence[Row], provider: Sequence[Row], run: str) -> str:
    found, requests = by_name(rows), by_name(provider)
    sizes = sorted({int(row.name.split(".")[1]) for row in rows})
    lines = [
        f"| Own code, and the library | CPU per | {' | '.join(f'{size} at once' for size in sizes)} |",
        f"| --- | --- |{' ---: |' * len(sizes)}",
    ]
    for name, one in _REPLACEMENTS.items():
        own, library = ([found[f"own-code.{size}.{name}.{way}"].value for size in sizes] for way in ("own", "library"))
        saved = [after - before for before, after in zip(own, library, strict=True)]
        whole = [requests[f"provider.{size}.{one.subject}.request"].value for size in sizes]
        shares = [part / (part + rest) for part, rest in zip(saved, whole, strict=True)]
        lines += [
            f"| {one.own} | {one.use} | {' | '.join(f'{value:.2f} ms' for value in own)} |",
            f"| … {one.library} | {one.use} | {' | '.join(f'{value:.2f} ms' for value in library)} |",
            f"| … saved, of a request | | {' | '.join(f'{share:.1%}' for share in shares)} |",
        ]
    return _SECTION.format(table="\n".join(lines), run=run)
