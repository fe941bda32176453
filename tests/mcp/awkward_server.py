"""A stdio MCP server whose tools have names and schemas that model providers refuse. It answers with what it got."""

from __future__ import annotations

import json
import sys
from typing import Any

TEXT = {"type": "string"}
LONG = "describe_every_single_resource_of_the_cluster_in_all_of_its_namespaces"
ALTERNATIVES = {
    "type": "object",
    "oneOf": [
        {"properties": {"name": TEXT}, "required": ["name"]},
        {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
    ],
}
REFERENCES = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}, "labels": {"type": "array"}},
    "required": ["tree"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"name": TEXT, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }
    },
}
TOOLS: dict[str, dict[str, Any]] = {
    "apps.list": {"type": "object"},
    "apps list": {"type": "object", "properties": {"name": TEXT}},
    LONG: {"type": "object"},
    "task": {"type": "object", "properties": {"description": TEXT, "subagent_type": TEXT}},
    "write_todos": {"type": "object", "properties": {"steps": {"type": "array"}}},
    "request_user_input": {"type": "object"},
    "by_name_or_id": ALTERNATIVES,
    "nested": REFERENCES,
    "not_an_object": {"type": "array", "items": TEXT},
    **{f"filler_{number:03}": {"type": "object"} for number in range(130)},
}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    params = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "awkward", "version": "1"},
            }
        case "tools/list":
            read_only = {"readOnlyHint": True}
            tools = TOOLS.items()
            return {"tools": [{"name": n, "inputSchema": s, "annotations": read_only} for n, s in tools]}
        case "tools/call":
            text = f"{params['name']} got {json.dumps(params.get('arguments') or {})}"
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if (result := answer(request)) is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()
