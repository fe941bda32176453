"""The page shows the settings of each model provider. They are those that the supervisor knows."""

from __future__ import annotations

import re
from typing import get_args

from ai_platform_engineering.llm.providers import Provider
from ai_platform_engineering.settings import Settings
from tests.servers import ROOT

SOURCE = (ROOT / "ai_platform_engineering/ui/web/src/agents/providers.ts").read_text(encoding="utf-8")


def test_the_providers_of_the_page_are_those_of_the_supervisor() -> None:
    listed, extras = SOURCE.split("export const EXTRAS")
    providers = {name.strip('"') for name in re.findall(r'^  ("?[a-z-]+"?): \[', listed, re.MULTILINE)}
    assert providers == {*get_args(Provider)} - {"offline"}
    assert set(re.findall(r'"([A-Z_]+)"', listed)) <= {name.upper() for name in Settings.model_fields}
    names = {path.stem for path in (ROOT / "locks").glob("*.lock")}
    assert set(re.findall(r': "([a-z]+)",', extras)) <= names
