"""What Slack checks in what is sent to it: texts, blocks, chunks of streams, views."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tests.integrations.slack_bot.block_kit import message_problems, view_problems
from tests.integrations.slack_bot.standin.refusals import RefusedError

MARKDOWN_LIMIT = 12_000
UPDATE_TEXT_LIMIT = 4_000
POST_TEXT_LIMIT = 40_000
FIELD_LIMIT = 256
BLOCK_LIMIT = 50

_CHUNKS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "markdown_text": (frozenset({"text"}), frozenset()),
    "task_update": (frozenset({"id", "title", "status"}), frozenset({"details", "output", "sources"})),
    "plan_update": (frozenset({"title"}), frozenset()),
    "blocks": (frozenset({"blocks"}), frozenset()),
}
_STATUSES = ("pending", "in_progress", "complete", "error")


def check_message(arguments: Mapping[str, Any], unknown_blocks: Collection[str], text_limit: int) -> None:
    """The content of a message that is posted or updated."""
    text, blocks, markdown = (arguments.get(name) for name in ("text", "blocks", "markdown_text"))
    if markdown and (text or blocks):
        raise RefusedError("markdown_text_conflict")
    if not (text or blocks or markdown or arguments.get("attachments")):
        raise RefusedError("no_text")
    if len(text or "") > text_limit:
        raise RefusedError("msg_too_long", f"text has {len(text or '')} characters")
    if len(markdown or "") > MARKDOWN_LIMIT:
        raise RefusedError("msg_too_long", f"markdown_text has {len(markdown or '')} characters")
    if blocks:
        check_blocks(blocks, unknown_blocks)
    check_metadata(arguments.get("metadata"))


def check_metadata(metadata: Any) -> None:
    if metadata is None:
        return
    if not isinstance(metadata, Mapping) or set(metadata) != {"event_type", "event_payload"}:
        raise RefusedError("invalid_metadata_format", "metadata has an event_type and an event_payload")
    if not isinstance(metadata["event_type"], str) or not isinstance(metadata["event_payload"], Mapping):
        raise RefusedError("invalid_metadata_schema")


def check_blocks(blocks: Any, unknown_blocks: Collection[str]) -> None:
    if not isinstance(blocks, list):
        raise RefusedError("invalid_blocks_format", "blocks must be a list")
    for block in blocks:
        if isinstance(block, Mapping) and block.get("type") in unknown_blocks:
            # A bot cannot know beforehand what an older workspace knows.
            raise RefusedError(
                "invalid_blocks", f"unsupported type: {block['type']} [json-pointer:/blocks]", fault=False
            )
    problems = message_problems(blocks)
    if problems:
        error = "msg_blocks_too_long" if problems[0].startswith("msg_blocks_too_long") else "invalid_blocks"
        raise RefusedError(error, "; ".join(problems))


def check_view(view: Any) -> None:
    problems = view_problems(view)
    if problems:
        error = "view_too_large" if problems[0].startswith("view_too_large") else "invalid_arguments"
        raise RefusedError(error, "; ".join(problems))


def check_stream(arguments: Mapping[str, Any], unknown_blocks: Collection[str]) -> None:
    """What a call adds to a stream."""
    chunks, markdown = arguments.get("chunks"), arguments.get("markdown_text")
    if markdown is not None and chunks is not None:
        raise RefusedError("cannot_provide_both_markdown_text_and_chunks")
    if len(markdown or "") > MARKDOWN_LIMIT:
        raise RefusedError("msg_too_long", f"markdown_text has {len(markdown or '')} characters")
    if chunks is not None:
        _check_chunks(chunks, unknown_blocks)


def _check_chunks(chunks: Any, unknown_blocks: Collection[str]) -> None:
    if not isinstance(chunks, list) or not all(isinstance(chunk, Mapping) for chunk in chunks):
        raise RefusedError("invalid_chunks", "chunks must be a list of objects")
    for place, chunk in enumerate(chunks):
        if problem := _chunk_problem(chunk):
            raise RefusedError("invalid_chunks", f"{problem} [json-pointer:/chunks/{place}]")
    written = sum(len(chunk["text"]) for chunk in chunks if chunk["type"] == "markdown_text")
    if written > MARKDOWN_LIMIT:
        raise RefusedError("msg_too_long", f"the chunks have {written} characters of Markdown")
    blocks = [block for chunk in chunks if chunk["type"] == "blocks" for block in chunk["blocks"]]
    if len(blocks) > BLOCK_LIMIT:
        raise RefusedError("msg_blocks_too_many")
    if blocks:
        check_blocks(blocks, unknown_blocks)


def _chunk_problem(chunk: Mapping[str, Any]) -> str:
    kind = str(chunk.get("type"))
    if kind not in _CHUNKS:
        return f"unsupported type: {kind}"
    required, optional = _CHUNKS[kind]
    keys = set(chunk) - {"type"}
    if missing := required - keys:
        return f"missing required field: {min(missing)}"
    if unknown := keys - required - optional:
        return f"unknown field: {min(unknown)}"
    if kind == "task_update" and chunk["status"] not in _STATUSES:
        return f"unknown status: {chunk['status']}"
    if kind == "blocks":
        return "" if isinstance(chunk["blocks"], list) else "blocks must be a list"
    texts = {key: chunk[key] for key in keys - {"sources"}}
    longest = MARKDOWN_LIMIT if kind == "markdown_text" else FIELD_LIMIT
    return _text_problem(texts, longest, kind)


def _text_problem(texts: Mapping[str, Any], longest: int, kind: str) -> str:
    for key, text in texts.items():
        if not isinstance(text, str):
            return f"{key} must be a string"
        if not text and key in ("text", "id", "title"):
            return f"{key} must not be empty"
        if len(text) > longest and kind != "markdown_text":
            return f"{key} must be at most {longest} characters"
    return ""


def with_block_ids(blocks: Sequence[Mapping[str, Any]], new_id: Callable[[], str]) -> list[dict[str, Any]]:
    """Slack names every block that has no name, and every element that can be used."""
    return [_named(block, new_id) for block in blocks]


def _named(block: Mapping[str, Any], new_id: Callable[[], str]) -> dict[str, Any]:
    named = {"block_id": new_id(), **block}
    for key in ("element", "accessory"):
        if key in block and block[key].get("type") != "image":
            named[key] = {"action_id": new_id(), **block[key]}
    if block.get("type") in ("actions", "context_actions"):
        named["elements"] = [{"action_id": new_id(), **element} for element in block["elements"]]
    return named
