"""A stdio MCP server that misbehaves on demand. Its arguments say how; it speaks the protocol and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def option(name: str, default: str = "") -> str:
    return next((arg.partition("=")[2] for arg in sys.argv[1:] if arg.startswith(f"{name}=")), default)


def tool(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def send(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool_names() -> list[str]:
    """From a file where there is one, so that a test can change them under way."""
    file = option("tools-file")
    return Path(file).read_text().split() if file else option("tools", "echo").split(",")


def call(name: str, arguments: dict[str, object]) -> dict[str, object]:
    if file := option("calls-file"):
        with Path(file).open("a") as calls:
            calls.write(f"{name}\n")
    match name:
        case "pid":
            text = str(os.getpid())
        case "sleep":
            time.sleep(float(str(arguments.get("seconds", 60))))
            text = "slept"
        case "large":
            text = "x" * int(str(arguments["size"]))
        case "announce":
            send({"method": "notifications/tools/list_changed"})
            text = "announced"
        case "exit":
            sys.exit(3)
        case _:
            text = json.dumps(arguments)
    return {"content": [{"type": "text", "text": text}]}


def meet(number: int, place: Path) -> None:
    """Wait until so many servers have come to one folder."""
    (place / str(os.getpid())).touch()
    while len([*place.iterdir()]) < number:
        time.sleep(0.01)


def answer(message: dict[str, object]) -> None:
    params = message.get("params") or {}
    assert isinstance(params, dict)
    match message.get("method"):
        case "initialize":
            time.sleep(float(option("start-delay", "0")))
            if number := int(option("meet", "0")):
                meet(number, Path(option("meeting")))
            result: dict[str, object] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "scripted", "version": "1"},
            }
        case "tools/list":
            names = tool_names()
            size = int(option("page-size", "100"))
            first = int(params.get("cursor") or 0)
            result = {"tools": [tool(name) for name in names[first : first + size]]}
            if first + size < len(names):
                result["nextCursor"] = str(first + size)
        case "tools/call":
            result = call(params["name"], params.get("arguments") or {})
        case "notifications/cancelled":
            if file := option("cancelled-file"):
                Path(file).write_text(str(params["requestId"]))
            return
        case _:
            return
    send({"id": message["id"], "result": result})


def main() -> None:
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if file := option("farewell-file"):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(Path(file).write_text("goodbye") and 0))
    if "child" in sys.argv:
        subprocess.Popen(["sleep", "600"])
    if "broken" in sys.argv:
        sys.exit(7)
    if text := option("stderr"):
        print(text, file=sys.stderr, flush=True)
    if "noisy" in sys.argv:
        print("Welcome to the scripted server!", flush=True)
    for line in sys.stdin:
        if "mute" not in sys.argv:
            answer(json.loads(line))
    while "stubborn" in sys.argv or option("farewell-file"):
        time.sleep(60)


main()
