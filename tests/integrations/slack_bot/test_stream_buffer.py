"""When a batch goes out: at once, at the end of a line, or after a while; never too often; and again if it failed."""

from __future__ import annotations

import itertools

import pytest

from ai_platform_engineering.integrations.slack_bot.thread_view.operations import AppendStream, StartStream
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import (
    GATHER_SECONDS,
    LARGE_BATCH,
    StreamBuffer,
    WritePace,
)
from tests.integrations.slack_bot.scenes import Scene, writes

PACE = 0.7
BEGUN = StreamBuffer().grown(5, False, now=100.0).after_flush(100.0)


def test_nothing_is_due_while_nothing_waits() -> None:
    assert StreamBuffer().due(PACE) is None
    assert BEGUN.due(PACE) is None


def test_the_first_piece_waits_for_nothing() -> None:
    assert StreamBuffer().grown(1, False, now=100.0).due(PACE) == 100.0


def test_a_piece_waits_for_more_but_not_for_long() -> None:
    assert BEGUN.grown(9, False, now=200.0).due(PACE) == 200.0 + GATHER_SECONDS
    assert BEGUN.grown(9, False, now=200.0).grown(12, False, now=200.3).due(PACE) == 200.0 + GATHER_SECONDS


def test_the_end_of_a_line_does_not_wait() -> None:
    waiting = BEGUN.grown(9, False, now=200.0).grown(12, True, now=200.1).grown(15, False, now=200.2)
    assert waiting.due(PACE) == 200.0
    assert waiting.after_flush(200.2).grown(20, False, now=300.0).due(PACE) == 300.0 + GATHER_SECONDS


def test_much_text_does_not_wait() -> None:
    assert BEGUN.grown(5 + LARGE_BATCH, False, now=200.0).due(PACE) == 200.0
    assert BEGUN.grown(4 + LARGE_BATCH, False, now=200.0).due(PACE) > 200.0


@pytest.mark.parametrize(("length", "line"), [(9, False), (9, True), (5 + LARGE_BATCH, False)])
def test_nothing_goes_out_more_often_than_it_may(length: int, line: bool) -> None:
    assert BEGUN.grown(length, line, now=100.1).due(3.0) == 103.0


def test_what_does_not_grow_does_not_wait() -> None:
    assert BEGUN.grown(5, True, now=200.0).due(PACE) is None
    assert BEGUN.grown(3, True, now=200.0).due(PACE) is None


# In the reducer


def test_batches_keep_the_pace_while_words_come_faster() -> None:
    scene = Scene()
    times: list[float] = []
    for number in range(400):
        before = len(scene.driver.operations)
        scene.hear(writes("m", f"word{number} " + "\n" * (number % 7 == 0)), then=0.02)
        times += [
            scene.model.now for operation in scene.driver.operations[before:] if isinstance(operation, AppendStream)
        ]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) >= 8
    assert min(gaps) >= WritePace().stream - 0.03
    assert max(gaps) <= WritePace().stream + GATHER_SECONDS


def test_the_last_words_go_out_by_the_timer_when_nothing_follows() -> None:
    scene = Scene()
    scene.hear(writes("m", "one"), then=0.1)
    scene.hear(writes("m", " two"), then=0.0)
    assert scene.text == "one"
    scene.driver.wait(GATHER_SECONDS + WritePace().stream)
    assert scene.text == "one two"


@pytest.mark.parametrize("fate", ["lost", "dropped", "later", "other", "too_long", "not_streaming", "bad_blocks"])
@pytest.mark.parametrize("failing", [1, 2, 3])
def test_nothing_is_lost_or_said_twice_when_a_batch_fails(fate: str, failing: int) -> None:
    fates = iter(["done", *[fate] * failing])
    scene = Scene(
        lambda operation: next(fates, "done") if isinstance(operation, StartStream | AppendStream) else "done"
    )
    for number in range(12):
        scene.hear(writes("m", f"w{number} "), then=1.0)
    scene.driver.wait(60.0)
    assert "".join(scene.text.split()) == "".join(f"w{number}" for number in range(12))
