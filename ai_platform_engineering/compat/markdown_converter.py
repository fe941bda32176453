"""markdownify: the pseudo tags that it adds to the parents of a node, which its documentation does not name."""

from __future__ import annotations

from typing import Final

INLINE: Final = "_inline"
"""The node is inside of a heading or a table cell, where no block can be."""
NO_FORMAT: Final = "_noformat"
"""The node is inside of preformatted text, where markup would be shown as it is."""
