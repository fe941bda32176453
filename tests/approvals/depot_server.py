"""A stdio MCP server that stands for a real backend: it writes every call that reaches it into a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

depot = FastMCP("depot")


def _record(tool: str, **args: Any) -> str:
    with Path(sys.argv[1]).open("a") as calls:
        calls.write(json.dumps([tool, args]) + "\n")
    return f"{tool} done"


@depot.tool(annotations=ToolAnnotations(readOnlyHint=True))
def find_parcel(name: str, kind: str = "parcel") -> str:
    """Find a parcel in the depot by its name."""
    return _record("find_parcel", name=name, kind=kind)


@depot.tool(annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=False))
def note_parcel(name: str) -> str:
    """Add a note to a parcel."""
    return _record("note_parcel", name=name)


@depot.tool()
def delete_parcel(name: str) -> str:
    """Delete a parcel from the depot."""
    return _record("delete_parcel", name=name)


@depot.tool(annotations=ToolAnnotations(destructiveHint=True))
def sync_depot(name: str, prune: bool = False, labels: list[str] | None = None) -> str:
    """Bring the depot in line with its plan."""
    return _record("sync_depot", name=name, prune=prune)


if __name__ == "__main__":
    depot.run()
