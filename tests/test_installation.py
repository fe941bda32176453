from __future__ import annotations

import re
from pathlib import Path

from ai_platform_engineering.installation import install_command

ROOT = Path(__file__).resolve().parents[1]


def test_no_text_names_the_product_on_a_package_index() -> None:
    """The name is not ours there: who registers it would run on our users' machines."""
    files = [*(ROOT / "ai_platform_engineering").rglob("*.*"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    texts = {path: path.read_text("utf-8") for path in files if path.suffix in {".py", ".md", ".yaml", ".toml"}}
    assert install_command("aws").startswith("run `make setup EXTRAS=aws` in the checkout")
    assert [str(path) for path, text in texts.items() if re.search(r"ai[-_]platform[-_]engineering\[", text)] == []
    assert [str(path) for path, text in texts.items() if re.search(r"install\s+\S*ai-platform-engineering", text)] == []
