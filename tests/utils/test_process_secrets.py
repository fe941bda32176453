"""The secrets of a process: removed from its environment, and unreadable for other processes of its user."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.process_secrets import removable

PROGRAM = """
import os, subprocess
from pathlib import Path
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.process_secrets import hide_process, remove_secrets
settings = load_settings(env_file=None)
hide_process()
remove_secrets(settings)
print(settings.openai_api_key.get_secret_value(), settings.environ["JIRA_API_TOKEN"], os.environ["PLACE"])
print("sk-secret" in str(os.environ), b"secret" in Path("/proc/self/environ").read_bytes())
print(subprocess.check_output(["env"]).count(b"secret"))
print(Path(f"/proc/{os.getpid()}/maps").stat().st_uid)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has /proc")
def test_secrets_leave_the_environment_and_stay_in_the_settings() -> None:
    secrets = {"OPENAI_API_KEY": "sk-secret", "JIRA_API_TOKEN": "a-secret", "PLACE": "here"}
    shown = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PATH": os.environ["PATH"], **secrets},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    # The files in /proc of a process that cannot be dumped belong to root.
    assert shown.splitlines() == ["sk-secret a-secret here", "False False", "0", "0"]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, set()),
        ({"AWS_REGION": "eu-central-1"}, {"AWS_SECRET_ACCESS_KEY"}),
        ({"JIRA_LLM_PROVIDER": "litellm"}, {"AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "RAG_DATABASE_URL"}),
    ],
)
def test_variables_that_a_library_reads_itself_are_kept(settings: dict[str, str], kept: set[str]) -> None:
    secrets = {"AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "RAG_DATABASE_URL"}
    environ = [*secrets, "PATH", "LANGSMITH_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"]
    assert set(removable(environ, load_settings(settings, env_file=None))) == secrets - kept
