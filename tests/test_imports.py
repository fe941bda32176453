"""What a start does without: libraries that take long to import, and that nobody has asked for."""

from __future__ import annotations

from pathlib import Path

from tests.servers import CommandLine

NOT_AT_START = {
    "aiohttp",
    "beartype",
    "fastmcp",
    "griffe",
    "key_value",
    "prometheus_client",
    "psycopg",
    "pymongo",
    "redis",
    "redisvl",
}


async def test_a_started_supervisor_has_imported_no_more_than_it_uses(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "PYTHONPROFILEIMPORTTIME": "1"}
    async with CommandLine(["serve", "--port", "0"], environ) as supervisor:
        lines = [line.rpartition("|")[2].strip() for line in supervisor.output if line.startswith("import time:")]
    imported = {name.partition(".")[0] for name in lines}
    assert "ai_platform_engineering.sandbox.tools" in lines, "the servers of the sandbox are part of a start"
    assert imported & NOT_AT_START == set()
