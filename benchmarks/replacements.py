"""The section about own code in place of a library in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.measurements.faults import LABELS, OTHER_CALLS, TIMEOUT
from benchmarks.rows import Row, by_name

_SECTION: Final = """\
## Own code in place of a library

This product has own code in place of a library where users notice the difference. Each was measured with the library
in its place.

The CPU that own code saves each time it is used, and the share of a whole request with the model provider over HTTP
(the first table of this page) that uses it once. A client of ours and one of the library ask the same server; the CPU
of the server is not counted. The last rows have whole requests.

{costs}

A fault in the answer to one call over HTTP, while {others} other calls of the same server are in progress:

{faults}

The start of a process with one tool in memory:

{starts}

- `own_transport` saves 5 % or more of a request with 32 at once.
- `hook_traces` leaves the traces of hooks out that LangChain prepares also while LangSmith tracing is off.
- `streamable_http` saves little CPU. With it, a fault in one call is reported at once and affects no other call. With
  the client of the MCP SDK, the other calls are lost, or the caller waits for its timeout ({timeout:g} s here,
  `TOOL_TIMEOUT` in the product). That client also has no headers of a single call, which state the user of the call,
  and does not say whether a lost call was sent.
- `tool_server` saves little CPU for each call. With it, a start is faster and takes less memory, because FastMCP is not
  imported. It is imported for a server that uses it.

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
    "request": _Replacement("`hook_traces`", "LangChain's traces of hooks", "request", "product"),
}


def section(rows: Sequence[Row], provider: Sequence[Row], run: str) -> str:
    found = by_name(rows)
    return _SECTION.format(
        costs=_costs(found, by_name(provider)),
        faults=_faults(found),
        starts=_starts(found),
        others=OTHER_CALLS,
        timeout=TIMEOUT,
        run=run,
    )


def _costs(found: Mapping[str, Row], requests: Mapping[str, Row]) -> str:
    sizes = sorted({int(size) for size in (name.split(".")[1] for name in found) if size.isdigit()})
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
    return "\n".join(lines)


def _faults(found: Mapping[str, Row]) -> str:
    lines = ["| Fault | Client | Its caller knows after | Other calls lost |", "| --- | --- | ---: | ---: |"]
    for fault, label in LABELS.items():
        for way, client in (("own", "`streamable_http`"), ("library", "client of the MCP SDK")):
            after, lost = (found[f"own-code.fault.{fault}.{way}.{what}"] for what in ("seconds", "lost"))
            lines.append(f"| {label} | {client} | {after.shown_value} | {lost.shown_value} |")
    return "\n".join(lines)


def _starts(found: Mapping[str, Row]) -> str:
    lines = ["| Server | Until ready | CPU | Resident |", "| --- | ---: | ---: | ---: |"]
    for way, server in (("own", "`tool_server`"), ("library", "FastMCP")):
        values = (found[f"own-code.start.{way}.{what}"].shown_value for what in ("seconds", "cpu", "memory"))
        lines.append(f"| {server} | {' | '.join(values)} |")
    return "\n".join(lines)
