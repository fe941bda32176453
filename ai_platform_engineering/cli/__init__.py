"""The command line, `platform-engineer`: one module per command, `parser` for the arguments of all of them.

What commands work with lives in the other packages; nothing outside this package imports it.
"""

from ai_platform_engineering.cli.entry import main
from ai_platform_engineering.cli.parser import build_parser

__all__ = ["build_parser", "main"]
