"""What a place wants of the supervisor: in its prompt for that run alone, and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ai_platform_engineering.events import Event, FinalResult, InputRequired
from ai_platform_engineering.final_results import NOTHING_TO_SAY, is_silence
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.people.model_inputs import Seen, watched
from tests.servers import Caller, calling, serving

WANTED = "Answer in two sentences and name the runbook."


def answer(events: list[Event]) -> str:
    assert isinstance(events[-1], FinalResult)
    return events[-1].text


async def test_instructions_are_in_the_prompt_of_their_run_and_only_there(tmp_path: Path) -> None:
    seen = Seen()
    async with watched(tmp_path, seen) as caller:
        await caller.ask("jira, please")
        plain = seen.prompts("supervisor")[0]
        agents = set(seen.prompts("jira"))
        seen.turns.clear()

        wishes = {"instructions": f"  {WANTED}\n"}
        await caller.ask("jira, please", metadata=wishes)
        await caller.ask("nobody, please", context_id="c", metadata=wishes)
        for prompt in seen.prompts("supervisor"):
            assert prompt.startswith(plain)
            added = prompt.removeprefix(plain)
            assert f"<channel_instructions>\n{WANTED}\n</channel_instructions>" in added
            assert NOTHING_TO_SAY not in added
        assert WANTED not in "".join(others for _, _, others in seen.turns)
        assert set(seen.prompts("jira")) == agents
        seen.turns.clear()

        await caller.ask("nobody, please", context_id="c")
        assert set(seen.prompts("supervisor")) == {plain}


async def test_they_hold_until_the_run_ends_also_when_it_waits_in_between(tmp_path: Path) -> None:
    seen = Seen()
    async with watched(tmp_path, seen) as caller:
        asked = await caller.ask("argocd, please", context_id="c", metadata={"instructions": WANTED})
        assert isinstance(asked[-1], InputRequired)
        seen.turns.clear()
        form = asked[-1].forms[0]
        resume = {"resume": {"form_id": form.form_id, "values": {"name": "x", "replicas": 2}}}
        answer(await caller.ask(resume, context_id="c", task_id=caller.task_id))
        assert all(WANTED in prompt for prompt in seen.prompts("supervisor"))


@pytest.mark.parametrize("wrong", ["x" * 4_001, 7, ["be brief"], {"be": "brief"}])
async def test_instructions_that_are_too_long_or_no_text_are_refused(tmp_path: Path, wrong: object) -> None:
    seen = Seen()
    async with watched(tmp_path, seen) as caller:
        with pytest.raises(Exception, match="instructions"):
            await caller.ask("jira, please", metadata={"instructions": wrong})
        assert not seen.turns
        answer(await caller.ask("nobody, please", metadata={"instructions": "x" * 4_000}))


@pytest.mark.parametrize("value", [None, False, "true", 1])
async def test_silence_is_not_spoken_of_where_it_is_not_wanted(tmp_path: Path, value: object) -> None:
    seen = Seen()
    async with watched(tmp_path, seen) as caller:
        await caller.ask("nobody, please", metadata={"silent_when_unsure": value})
        assert NOTHING_TO_SAY not in "".join(seen.prompts("supervisor"))
        await caller.ask("nobody, please", metadata={"silent_when_unsure": True})
        assert seen.prompts("supervisor")[-1].count(NOTHING_TO_SAY) == 1


@asynccontextmanager
async def offline(folder: Path) -> AsyncIterator[Caller]:
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "EMBEDDINGS_PROVIDER": "none"}
    async with serving(create_app, environ) as url, calling(url) as caller:
        yield caller


async def test_the_offline_model_is_silent_when_it_cannot_help_and_only_then(tmp_path: Path) -> None:
    quiet = {"silent_when_unsure": True}
    async with offline(tmp_path) as caller:
        for chatter in ("hello everyone!", "who is in for lunch?", "lol", "translate this poem into French"):
            assert not is_silence(answer(await caller.ask(chatter)))
            assert answer(await caller.ask(chatter, metadata=quiet)) == NOTHING_TO_SAY, chatter
        for question in ("show argocd version", "what does DISTRIBUTED_AGENTS do?"):
            helpful = answer(await caller.ask(question, metadata=quiet))
            assert helpful == answer(await caller.ask(question))
            assert NOTHING_TO_SAY not in helpful
