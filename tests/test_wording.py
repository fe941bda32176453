"""Words that make prose and names hard to read are not used in the product and its documentation."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLED_OR_BUILT = {"node_modules", "built", "built-tests"}
AVOIDED = re.compile(
    r"(?<![a-z])(patience|keeper|told|telling|hearing|whisper|surroundings|discreet|company|owe[ds]?|paid|nobody|somebody"
    r"|whoever|whatsoever|whom|marks)(?![a-z])|\b(most|longest|deepest)_[a-z]|\b(corner|ears|flight)\b(?<!in flight)",
    re.IGNORECASE,
)
# The words of people that the offline model matches, names in stored files, sample data of the sandbox.
ALLOWED = {
    "offline_model/knowledge/relevance.py": {"somebody", "told"},
    "offline_model/planning/request_split.py": {"told", "whom"},
    "offline_model/tool_calls/criteria.py": {"somebody"},
    "integrations/slack_bot/thread_view/content.py": {"told"},
    "integrations/slack_bot/thread_view/state.py": {"telling", "flight"},
    "sandbox/seed.yaml": {"pay"},
    "sandbox/store.py": {"company"},
}


def sources() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))
    for folder, folders, names in os.walk(ROOT / "ai_platform_engineering"):
        folders[:] = [name for name in folders if name not in INSTALLED_OR_BUILT]
        for path in (Path(folder, name) for name in names):
            if path.suffix in {".py", ".yaml", ".md", ".ts", ".tsx", ".css", ".mjs"}:
                yield path


def test_avoided_words_are_not_used() -> None:
    found = []
    for path in sources():
        allowed = next((words for name, words in ALLOWED.items() if path.as_posix().endswith(name)), set[str]())
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = {match[0].lower() for match in AVOIDED.finditer(line)} - allowed
            found += [f"{path.relative_to(ROOT)}:{number}: {word}" for word in sorted(words)]
    assert not found, "\n".join(["Use the terms of docs/glossary.md and of the field instead of:", *found])
