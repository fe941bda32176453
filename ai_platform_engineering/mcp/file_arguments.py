"""Detection of arguments that name files of this machine, from the schema of a tool.

A path often belongs to another place: a repository, a pod, a bucket. Only unambiguous words count here. `local_files`
also checks the values of all arguments for paths of this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*")
_FILE_WORDS: Final = frozenset({"file", "files", "filepath", "filepaths"})
_PATH_WORDS: Final = _FILE_WORDS | {"path", "paths", "dir", "directory", "folder", "attachment", "attachments"}
_TRANSFER_WORDS: Final = frozenset({"upload", "attach", "download", "save", "export", "import", "output"})
# An argument whose name ends with one of these is not a path, even if its description mentions files.
_OTHER_WORDS: Final = frozenset(
    {"id", "ids", "type", "format", "encoding", "content", "text", "body", "data", "name", "filename", "title", "url"}
    | {"base64", "comment", "key", "pattern", "patterns", "mode", "size", "limit", "count", "query"}
)
_LOCAL: Final = re.compile(
    r"\blocal (file|path|dir|folder|disk|machine)|\bfile ?system\b|\b(on|from|to) disk\b"
    r"|\babsolute (or relative )?(file ?|directory )?path|\b(current|working) directory\b"
    r"|\b(path|files?|file paths?) (\w+ ){0,3}to (be )?(upload|attach|send)",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(
    r"\b(repo|repositor(y|ies)|branch|commit|merge request|pull request|project|archive|artifacts?|bucket|pod|container"
    r"|cluster|node|remote|registry|wiki)\b",
    re.IGNORECASE,
)
_ELSEWHERE_SIBLINGS: Final = frozenset(
    {"repo", "repository", "owner", "project", "branch", "ref", "commit", "sha", "bucket", "pod", "namespace", "node"}
    | {"container", "cluster", "host"}
)


def names_file(name: str, schema: Schema, siblings: Schema, tool: str) -> bool:
    """Whether the argument `name` of `tool` is a path of this machine; `siblings` are the arguments beside it."""
    words = _words(name)
    description = str(schema.get("description") or "")
    if not words or words[-1] in _OTHER_WORDS:
        return False
    if "local" in words and words[-1] in _PATH_WORDS:
        return True
    if _LOCAL.search(description):
        return True
    if words[-1] not in _PATH_WORDS or _is_elsewhere(description, siblings, name):
        return False
    return words[-1] in _FILE_WORDS or words[:2] == ["file", "path"] or _transfers(words[:-1], tool)


def properties_of(schema: Schema, root: Schema) -> dict[str, Schema]:
    """The properties that a value of `schema` may have, its references and alternatives included."""
    found: dict[str, Schema] = {}
    for part in _parts(schema, root, 0):
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            found |= {name: inner for name, inner in properties.items() if isinstance(inner, Mapping)}
    return found


def items_of(schema: Schema, root: Schema) -> Schema:
    """The schema of the items of a list."""
    inner = (part["items"] for part in _parts(schema, root, 0) if isinstance(part.get("items"), Mapping))
    return next(inner, {})


def _parts(schema: Schema, root: Schema, depth: int) -> Iterator[Schema]:
    if depth > 8:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and (target := _referenced(reference, root)):
        yield from _parts(target, root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(key) or ():
            if isinstance(option, Mapping):
                yield from _parts(option, root, depth + 1)


def _referenced(reference: str, root: Schema) -> Schema | None:
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        target = target.get(step) if isinstance(target, Mapping) else None
    return target if isinstance(target, Mapping) else None


def _is_elsewhere(description: str, siblings: Schema, name: str) -> bool:
    others = {word for other in siblings if other != name for word in _words(other)}
    return bool(_ELSEWHERE.search(description)) or not _ELSEWHERE_SIBLINGS.isdisjoint(others)


def _transfers(words: list[str], tool: str) -> bool:
    return not _TRANSFER_WORDS.isdisjoint([*words, *_words(tool)])


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
