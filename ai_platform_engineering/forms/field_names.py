"""Names of form fields: equal spellings, and names that say that the value is a credential."""

from __future__ import annotations

import re
from typing import Any, Final

from ai_platform_engineering.utils.a2a_common.codec.labels import one_line
from ai_platform_engineering.utils.redact import looks_secret, redact

_QUOTE_LENGTH: Final = 120
_SEPARATORS: Final = re.compile(r"[\s_-]+")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# After these words, KEY is an identifier and not a credential: `issue_key`.
_IDENTIFIED: Final = frozenset(
    {"ISSUE", "PROJECT", "TICKET", "EPIC", "PARENT", "SPACE", "BOARD", "OBJECT", "PRIMARY", "PUBLIC"}
)


def normalized_name(name: str) -> str:
    """`name` in a form in which equal spellings are equal: without case, and with one kind of separator."""
    return _SEPARATORS.sub("_", name.casefold()).strip("_")


def is_secret(field_name: str) -> bool:
    """Whether the name of a field says that its value is a credential: `api_key`, `apiKey`, `API key`."""
    words = [word.upper() for word in _WORD.findall(field_name)]
    plain = [
        word for place, word in enumerate(words) if word != "KEY" or (place > 0 and words[place - 1] not in _IDENTIFIED)
    ]
    return looks_secret("_".join(plain))


def quoted(value: Any) -> str:
    """`value` for a sentence: on one line, shortened, with credentials masked."""
    if value == []:
        return "an empty list"
    text = value if isinstance(value, str) else str(value)
    return f"“{one_line(redact(text), _QUOTE_LENGTH)}”"
