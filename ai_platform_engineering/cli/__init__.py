"""The command line, `platform-engineer`: the commands, and `parser` with the arguments of all of them.

Commands only call the other packages. No other package imports this one.
"""

from ai_platform_engineering.cli.entry import main
from ai_platform_engineering.cli.parser import build_parser

__all__ = ["build_parser", "main"]
