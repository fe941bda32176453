"""A stdio MCP server whose tools read files of the machine, as public ones do. It notes every call in CALLS_FILE."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

from mcp.server.fastmcp import FastMCP
from pydantic import Field

server = FastMCP("files")


def note(tool: str, *values: object) -> None:
    with Path(os.environ["CALLS_FILE"]).open("a") as calls:
        calls.write(json.dumps([tool, *values]) + "\n")


def read(name: str) -> str:
    path = Path(name).expanduser()
    return path.read_text(errors="replace") if path.is_file() else f"no file {name}"


@server.tool()
def upload(files: Annotated[str, Field(description="URL to attach (single file URL as a string)")]) -> str:
    note("upload", files)
    return read(files)


@server.tool()
def create_page(
    title: str,
    content: str = "",
    content_file: Annotated[str, Field(description="Filesystem path to read the page body from")] = "",
) -> str:
    note("create_page", content_file)
    return read(content_file) if content_file else content


@server.tool()
def update(fields: dict[str, Any] | str) -> str:
    note("update", fields)
    return json.dumps(fields)


@server.tool()
def read_source(path: str, branch: str) -> str:
    note("read_source", path)
    return f"{path} of {branch}"


@server.tool()
def where() -> str:
    home = Path.home()
    places = {"cwd": Path.cwd(), "home": home}
    return json.dumps(
        {
            **{name: str(path) for name, path in places.items()},
            "files": {name: [file.name for file in path.iterdir()] for name, path in places.items()},
            "modes": {name: oct(path.stat().st_mode & 0o777) for name, path in places.items()},
        }
    )


server.run()
