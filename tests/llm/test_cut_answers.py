"""Local models' thinking, both placements, and the command line, with OpenAI's wire format."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from ai_platform_engineering.events import Event, TextDelta
from tests.llm.provider_shapes.openai_chat import OPENAI_CHAT
from tests.llm.provider_shapes.product import (
    Product,
    answer,
    delegation,
    environ_of,
    final,
    look_up,
    product,
)
from tests.llm.provider_shapes.server import shape_server
from tests.llm.provider_shapes.turns import Exchange, WireCall, WireTurn
from tests.normalised import normalised
from tests.servers import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "secret thought"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local_model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Product]:
    async with product(OPENAI_CHAT, tmp_path_factory.mktemp("local")) as running:
        yield running


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        ((f"<think>{SECRET}</think>", "\n\nIt is healthy."), "It is healthy."),
        (("<th", "ink>\nsecret ", "thought\n</th", "ink>", "\n\n", "It ", "is healthy."), "It is healthy."),
        (("\n<thinking>secret thou", "ght</thinking>It is healthy."), "It is healthy."),
        (("Well. ", f"<think>{SECRET}</think>", "It is < 5."), "Well. It is < 5."),
        (("The tag `<think>` ", "begins a thought."), "The tag `<think>` begins a thought."),
    ],
    ids=["one piece", "split", "thinking", "in the middle", "in code"],
)
async def test_think_blocks_are_not_shown_and_not_handed_back(
    local_model: Product, pieces: Sequence[str], shown: str
) -> None:
    events = await local_model.run(delegation(), WireTurn(pieces), WireTurn(pieces))
    assert SECRET not in repr(events)
    assert final(events).text == shown
    (handed_back,) = local_model.server.histories()[-1]
    assert handed_back.result == shown
    assert SECRET not in repr(local_model.server.requests[-1]["messages"])


async def test_a_thought_that_never_ends_is_no_answer(local_model: Product) -> None:
    events = await local_model.run(WireTurn((f"<think>{SECRET}", " and on and on")), WireTurn(("It is healthy.",)))
    assert SECRET not in repr(events)
    assert final(events).text == "It is healthy."


async def test_a_thought_without_its_opening_tag_is_not_part_of_the_answer(local_model: Product) -> None:
    """Some chat templates put the opening tag into the prompt."""
    events = await local_model.run(WireTurn((SECRET, "\n</thi", "nk>\n\nIt ", "is healthy.")))
    ending = final(events)
    assert ending.text == "It is healthy."
    written = [event for event in events if isinstance(event, TextDelta)]
    assert "".join(e.text for e in written if e.message_id == ending.answer_message_id) == "It is healthy."


CUT = WireTurn(("Let me see.",), (WireCall("look_up", '{"name": "guestbook-stag'),), end="length")
PLACED: dict[str, Sequence[WireTurn]] = {
    "a cut call": (delegation(), CUT, WireTurn((), (look_up(),)), WireTurn(("Healthy.",)), answer()),
    "a cut answer": (delegation(), WireTurn(("It is heal",), end="length"), answer()),
    "a broken answer": (delegation(), WireTurn(("It is heal",), end="broken"), answer()),
    "a refusal": (delegation(), WireTurn(refusal="I cannot do that.", end="refusal"), answer()),
    "calls that are always cut": (delegation(), CUT, CUT, CUT, WireTurn(("I cannot look it up.",)), answer()),
    "a thought": (delegation(), WireTurn((f"<think>{SECRET}</think>It is healthy.",)), answer()),
}


async def test_an_agents_cut_turns_look_the_same_in_both_placements(tmp_path: Path) -> None:
    async def played(folder: Path, *, remote: bool) -> dict[str, tuple[object, list[Exchange]]]:
        seen: dict[str, tuple[object, list[Exchange]]] = {}
        async with product(OPENAI_CHAT, folder, remote=remote) as running:
            for name, turns in PLACED.items():
                events: list[Event] = await running.run(*turns)
                assert final(events).limit is None
                seen[name] = normalised(events), running.server.histories()[-1]
        return seen

    here, there = await played(tmp_path / "here", remote=False), await played(tmp_path / "there", remote=True)
    assert here == there
    results = {name: exchanges[0].result or "" for name, (_, exchanges) in here.items()}
    assert "This answer is incomplete" in results["a cut answer"]
    assert "This answer is incomplete" in results["a broken answer"]
    assert results["a refusal"] == "The model declined to answer. I cannot do that."


async def test_chat_prints_a_cut_answer_says_why_and_exits_with_4(tmp_path: Path) -> None:
    with shape_server(OPENAI_CHAT) as server:
        server.play(WireTurn(("The staging ", "cluster is"), end="length"))
        environ = environ_of(server, tmp_path)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ai_platform_engineering.cli", "chat", "How is staging?"),
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **environ},
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await asyncio.wait_for(process.communicate(), 60)
    assert (process.returncode, stdout.decode()) == (4, "The staging cluster is\n")
    assert "The answer is not complete. The model reached its output limit" in stderr.decode()
