from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ai_platform_engineering.knowledge_bases.rag.stores.opening import knowledge_file, open_store
from ai_platform_engineering.settings import load_settings


def test_a_file_in_the_data_directory_is_the_default(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, env_file=None)
    open_store(settings).close()
    assert knowledge_file(settings) == tmp_path / "knowledge.db"
    assert knowledge_file(settings).exists()


def test_postgres_without_its_driver_says_what_to_install() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from ai_platform_engineering.knowledge_bases.rag.stores.opening import open_store
from ai_platform_engineering.settings import load_settings
try:
    open_store(load_settings({"RAG_DATABASE_URL": "postgresql://me:hunter2@127.0.0.1:1/rag"}, env_file=None))
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8").stdout
    assert said.startswith(
        "KnowledgeStoreError RAG_DATABASE_URL needs psycopg, which is not installed: run `make setup EXTRAS=postgres`"
    )
    assert "hunter2" not in said
