"""The text of tools and agents as models get it: between delimiters."""

from __future__ import annotations

import re

_DELIMITED = re.compile(r'<untrusted id="([0-9a-f]+)" from="[^"]*">\n(.*)\n</untrusted id="\1">', re.DOTALL)


def without_delimiters(text: str) -> str:
    return _DELIMITED.sub(lambda found: found[2], text)
