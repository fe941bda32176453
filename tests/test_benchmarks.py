"""The benchmarks run and report every number. How large the numbers are is not tested."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk
from ai_platform_engineering.knowledge_bases.rag.source import DocumentSource, Item
from benchmarks.effort import FULL, QUICK
from benchmarks.knowledge.questions import Place, questions, unrelated
from benchmarks.knowledge.readmes import PackageReadmes
from benchmarks.knowledge.recombined import recombined
from benchmarks.knowledge.scores import answered, ndcg, recall, reciprocal_rank
from benchmarks.machine import this_machine
from benchmarks.measurements import EVERYTHING
from benchmarks.measurements.faults import LABELS as FAULTS
from benchmarks.measurements.faults import WAYS as FAULT_WAYS
from benchmarks.measurements.own_code import LABELS as OWN_CODE
from benchmarks.measurements.own_code import STARTS
from benchmarks.measurements.retrieval import METRICS, WAYS
from benchmarks.measurements.skills import LABELS
from benchmarks.measurements.workers import SHARES
from benchmarks.page import page, plots
from benchmarks.plot import bars, curves
from benchmarks.processes import ROOT
from benchmarks.provider.plot import curves as provider_curves
from benchmarks.provider.section import section
from benchmarks.provider.subjects import LABELS as PROVIDER_LABELS
from benchmarks.results import Result, load_results, machines_of, runs_of
from benchmarks.rows import AIMS, Row, by_subject
from benchmarks.samples import Answered, Sample, best, cost_of_one, middle_ratio, sample, steady_rate
from benchmarks.stores.section import section as stores_section
from benchmarks.watched import Watched

# Their imports are most of what a quick run costs, so they are forked. The numbers of a quick run are noise anyway.
FORKED = (
    "benchmarks.alone",
    "benchmarks.faulty_server",
    "benchmarks.knowledge.searcher",
    "benchmarks.provider.server",
    "benchmarks.replaced",
    "benchmarks.serve",
    "benchmarks.slack_bot",
    "benchmarks.tool_server",
    "deepagents",
)
QUICK_RUN = f"""
from contextlib import nullcontext
from benchmarks.__main__ import main
from tests.forked_commands import forked_commands, is_possible
with forked_commands(*{FORKED}) if is_possible() else nullcontext():
    main()
"""
LOAD = ("call", "request", "throughput", "busiest", "server")
KINDS = ("sentences", "problems", "keywords", "names", "typos")
COSTS = ("keep", "first", "p50", "p95", "embed", "words", "vectors", "rest", "cpu", "memory", "more-memory", "disk")
IN_POSTGRES = ("postgres.memory", "memory.postgres", "postgres.postgres")
NAMES = {
    *(f"provider.{n}.{who}.{what}" for n in QUICK.streams for who in PROVIDER_LABELS for what in LOAD),
    *(f"provider.{n}.{who}.memory" for n in QUICK.streams if n > 1 for who in (*PROVIDER_LABELS, "remote-agent")),
    *(f"provider.rest.{who}" for who in PROVIDER_LABELS),
    *("provider.start.bare", "provider.start.product"),
    *(f"cpu.{what}" for what in ("bare", "graph", "memory", "log", "durable", "remote", "remote-agent")),
    "cpu.remote-durable",
    *(f"{what}{how}" for what in ("against-bare", "durable", "remote", "remote-as-it-comes") for how in ("", ".best")),
    *("calls.memory", "calls.remote", "work"),
    *(f"{first}.{what}" for first in ("first-event", "first-answer") for what in ("bare", "durable", "remote-durable")),
    *(f"throughput.{streams}{bare}" for streams in (1, 8, 32) for bare in ("", ".bare")),
    *("memory.load", "memory.load.bare", "memory.rest", "memory.rest.bare", "memory.used", "start", "start.bare"),
    *(
        "prompt",
        "prompt.bare",
        "prompt.skills",
        "prompt.skills.bare",
        "tool.memory",
        "tool.stdio",
        "tool.http",
        "unreachable",
        "refused",
    ),
    *(
        "event.memory",
        "event.durable",
        "idle.tasks",
        "idle.watchers",
        "slack.first",
        "slack.first.middle",
        "slack.event",
    ),
    *(f"agents.{count}{bare}" for count in QUICK.agents for bare in ("", ".bare")),
    *(f"turns.{turn}{bare}" for turn in QUICK.turns for bare in ("", ".bare")),
    *(f"skills.{count}.{what}" for count in QUICK.skills for what in LABELS),
    *("retrieval.ingest", "retrieval.unrelated", "retrieval.alone.ndcg", "retrieval.alone.recall"),
    *(f"retrieval.{what}.{way}" for what in (*METRICS, *KINDS) for way in WAYS),
    *("knowledge.read", "knowledge.embed", "knowledge.load", "knowledge.memory.rest", "knowledge.memory.model"),
    *(f"own-code.{n}.{what}.{way}" for n in QUICK.streams for what in OWN_CODE for way in ("own", "library")),
    *(f"own-code.fault.{fault}.{way}.{what}" for fault in FAULTS for way in FAULT_WAYS for what in ("seconds", "lost")),
    *(f"own-code.start.{way}.{what}" for way in STARTS for what in ("seconds", "cpu", "memory")),
    *(f"knowledge.sqlite.{size}.{cost}" for size in QUICK.chunks for cost in COSTS),
    *("stores.memory.memory", "stores.sqlite.memory", "stores.memory.sqlite", "stores.sqlite.sqlite", "stores.default"),
    *("takeover.restart", "takeover.restart.slowest", "takeover.restart.start"),
    *("access.open", "access.protected", "access.ratio"),
}
CPU_OF_POSTGRES = {*(f"stores.{store}.server" for store in IN_POSTGRES), "workers.1.database", "workers.2.database"}
# Where there is no server, these are left out.
NAMES_OF_SERVERS = {
    "postgres": {
        *(f"knowledge.postgres.{size}.{cost}" for size in QUICK.chunks_in_postgres for cost in COSTS),
        *(f"stores.{store}" for store in IN_POSTGRES),
        *CPU_OF_POSTGRES,
        *("takeover.replica", "takeover.replica.slowest"),
        *(f"replicas.{what}.{where}" for what in ("live", "subscribe") for where in ("own", "other")),
        *(f"workers.{count}.{share}" for count in (1, 2) for share in SHARES),
        *("workers.1", "workers.2", "workers.cores", "workers.ratio"),
    },
    "mongodb": {"stores.mongodb.memory", "stores.mongodb.memory.server"},
    "redis": {"stores.redis.memory", "stores.redis.memory.server"},
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_quick_run_has_every_row(tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    command = [sys.executable, "-c", QUICK_RUN, "--quick", "--json", str(file)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, encoding="utf-8")
    assert result.returncode == 0, result.stderr
    numbers = json.loads(file.read_text())
    names = {row["name"] for row in numbers["rows"]}
    here = [of_server for of_server in NAMES_OF_SERVERS.values() if of_server & names]
    # The CPU of a server that was not started here is not known.
    unknown = CPU_OF_POSTGRES if os.environ.get("TEST_POSTGRES_URL") else set()
    assert names == NAMES.union(*here) - unknown
    always = NAMES.union(*NAMES_OF_SERVERS.values())
    assert AIMS.keys() <= always | {f"provider.{streams}.product.call" for streams in FULL.streams}

    rows = [Row(**row) for row in numbers["rows"]]
    written = page({name: Result(this_machine(), tuple(rows) if name == "provider" else ()) for name in EVERYTHING})
    provider, requests, stores, knowledge, skills, own_code = by_subject(rows)
    assert all(row.shown_value in written for row in [*provider, *stores])
    assert written.index("model provider over HTTP") < written.index("With the model in the process")
    assert all(row.label in written for row in requests)
    assert all(row.shown_value.split()[0] in written for row in knowledge if row.name.startswith("retrieval.ndcg"))
    assert all(row.shown_value in written for row in [*skills, *own_code])
    for drawn in plots(rows).values():
        ElementTree.fromstring(drawn)  # noqa: S314 - our own


def test_the_page_is_that_of_the_stored_results() -> None:
    results = load_results()
    assert [*results] == [*EVERYTHING]
    rows = [row for result in results.values() for row in result.rows]
    written = {"performance.md": page(results), **plots(rows)}
    for name, text in written.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, "write it with: python -m benchmarks.page"


def test_a_section_names_the_run_of_each_of_its_measurements() -> None:
    old = replace(this_machine(), date="2026-01-01 10:00 UTC", load_before=0.5, load_after=1.25)
    new = replace(old, date="2026-01-02 10:00 UTC")
    results = {"work": Result(old, ()), "start-up": Result(new, ()), "slack": Result(old, ())}
    assert runs_of(results, ["work", "slack"]) == (
        "Measured on 2026-01-01 10:00 UTC, load average 0.5 before and 1.2 after the run."
    )
    both = runs_of(results, results).splitlines()
    assert [line.rpartition(": ")[2] for line in both] == ["work, slack.", "start-up."]
    assert machines_of(results) == f"{old.description}."


def test_the_machine_names_the_installed_extras() -> None:
    named = (this_machine().extras or "").split(", ")
    for extra, package in {"aws": "boto3", "redis": "redisvl"}.items():
        assert (extra in named) == (find_spec(package) is not None)
    assert "openai" not in named
    shown = [replace(this_machine(), extras=extras).description.rpartition("; ")[2] for extras in ("aws", "", None)]
    assert shown == ["extras: aws", "extras: none", "extras: not recorded"]


def test_every_question_names_places_that_are_there() -> None:
    asked = questions()
    headings = {
        Place(path.relative_to(ROOT).as_posix(), line.strip("# "))
        for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    }
    assert {place for question in asked for place in question.places} <= headings
    assert len({question.text for question in asked}) >= 100
    assert len(unrelated()) >= 15


def test_scores_of_a_ranking() -> None:
    assert ndcg("abc", {"a"}) == reciprocal_rank("abc", {"a"}) == 1
    assert ndcg("xa", {"a", "b"}) == pytest.approx(0.6309 / 1.6309, abs=1e-3)
    assert recall("xa", {"a", "b"}) == reciprocal_rank("xa", {"a", "b"}) == 0.5
    assert (answered("xyza", {"a"}), answered("xya", {"a"}), reciprocal_rank("xyz", {"a"})) == (0, 1, 0)


def test_recombined_documents_are_the_same_every_time_and_as_many_as_asked_for() -> None:
    originals = [Chunk("d", 0, "Deploy > Health", "A sentence about health. Another one, about something else.")]
    vectors = np.eye(1, 8, dtype=np.float32)
    made = list(recombined(originals, vectors, 0, 25))
    assert sum(len(one.chunks) for one in made) == 25
    assert [one.document for one in made] == [one.document for one in recombined(originals, vectors, 0, 25)]
    assert all(np.allclose(np.linalg.norm(one.vectors, axis=1), 1) for one in made)


def test_packages_are_asked_for_their_readmes_but_not_our_own() -> None:
    names = [item.path for item in asyncio.run(_items(PackageReadmes()))]
    assert names == sorted(names)
    assert "pytest" in names
    assert "ai-platform-engineering" not in names


async def _items(source: DocumentSource) -> list[Item]:
    return [item async for item in source.items()]


def rows_of(**values: float) -> list[Row]:
    return [Row(name.replace("__", ".").replace("_", "-"), name, value, "ms") for name, value in values.items()]


def test_a_row_meets_its_aim_up_to_the_limit() -> None:
    limit = AIMS["start"].limit
    assert Row("start", "", limit, "s").met is True
    assert Row("start", "", limit + 0.01, "s").met is False
    assert Row("start.bare", "", 99, "s").met is None


def test_an_aim_for_a_ratio_looks_at_the_ratio() -> None:
    assert Row("cpu.memory", "", 500, "ms", 0.9).met is True
    assert Row("cpu.memory", "", 1, "ms", 1.1).met is False
    assert Row("cpu.memory", "", 1, "ms", 1.1).shown_aim == "≤ 1x plain graph"


def test_an_aim_can_be_the_least() -> None:
    limit = AIMS["workers.ratio"].limit
    assert Row("workers.ratio", "", limit, "x").met is True
    assert Row("workers.ratio", "", limit - 0.01, "x").met is False
    assert Row("workers.ratio", "", limit, "x").shown_aim == "≥ 1.7x"


def test_the_steady_rate_is_without_the_begin_and_the_end_of_the_load() -> None:
    answers = [Answered(0, 0, 0, 0, ended) for ended in (9, 9.5, 10, 10.5, 11, 11.5, 14, 20)]
    assert steady_rate(answers, streams=2) == pytest.approx(2)
    with pytest.raises(ValueError, match="8 requests are too few for 4 streams"):
        steady_rate(answers, streams=4)


def test_a_sample_is_per_request_and_adds_up_the_processes() -> None:
    answers = [Answered(0.01, 0.02, 0.03, 5), Answered(0.03, 0.04, 0.05, 7)]
    taken = sample(answers, [0.1, 0.3], wall_seconds=4)
    assert taken.parts == pytest.approx((50, 150))
    assert taken.cpu_ms == pytest.approx(200)
    assert (taken.first_event_ms, taken.events, taken.per_second) == pytest.approx((20, 6, 0.5))


def test_the_best_of_rounds_takes_each_number_from_where_it_was_best() -> None:
    slow = Sample(cpu_ms=9, first_event_ms=1, first_answer_ms=8, per_second=5, events=3, parts=(4, 5))
    cheap = Sample(cpu_ms=7, first_event_ms=2, first_answer_ms=6, per_second=4, events=2, parts=(3, 4))
    assert best([slow, cheap]) == Sample(7, 1, 6, 5, 2, (3, 4))


def test_the_middle_ratio_is_taken_within_each_round() -> None:
    def spent(milliseconds: float) -> Sample:
        return Sample(cpu_ms=milliseconds, first_event_ms=0, first_answer_ms=0, per_second=0, events=0)

    rounds = [{"a": spent(a), "b": spent(b)} for a, b in ((20, 10), (90, 30), (11, 10))]
    assert middle_ratio(rounds, "a", to="b") == pytest.approx(2)
    assert middle_ratio(rounds, "a", to="b", of=lambda one: one.cpu_ms + 10) == pytest.approx(1.5)


def test_a_watched_subject_has_the_cpu_of_others_while_it_is_asked() -> None:
    class Instant:
        def load(self, requests: int, *, streams: int = 1, context: str | None = None) -> Sample:
            return Sample(cpu_ms=1, first_event_ms=0, first_answer_ms=0, per_second=0, events=0)

    clock = iter([10.0, 10.5])
    watched = Watched(Instant(), {"server": lambda: next(clock)})
    watched.load(5)
    assert watched.per_request_ms("server") == pytest.approx(100)
    assert watched.share("server") > 0


def test_the_cost_of_an_event_is_the_difference_over_the_difference() -> None:
    many = Sample(cpu_ms=50, first_event_ms=0, first_answer_ms=0, per_second=0, events=210)
    few = Sample(cpu_ms=30, first_event_ms=0, first_answer_ms=0, per_second=0, events=10)
    assert cost_of_one(many, few) == pytest.approx(0.1)


def test_bars_show_what_each_part_adds() -> None:
    costs = rows_of(
        cpu__bare=60, cpu__graph=25, cpu__memory=35, cpu__log=37, cpu__durable=40, cpu__remote=44, cpu__remote_agent=14
    )
    drawn = {bar.label: dict(bar.parts) for bar in bars(costs)}
    assert drawn["product"] == {"graph": 25, "server": 10, "log": 2, "conversations": 3}
    assert drawn["in memory, agent remote"] == {"supervisor": 30, "agent": 14}


def test_curves_follow_the_sizes_that_were_measured() -> None:
    costs = rows_of(agents__16=3, agents__16__bare=4, agents__4=1, agents__4__bare=2)
    assert {curve.kind: curve.points for curve in curves(costs, "agents")} == {
        "bare": ((4, 2), (16, 4)),
        "product": ((4, 1), (16, 3)),
    }


def test_the_section_and_curves_of_the_provider_leave_out_what_was_not_measured() -> None:
    rows = [
        Row("provider.1.bare.request", "", 100, "ms", 1.0),
        Row("provider.1.product.request", "", 50, "ms", 0.5),
        Row("provider.8.bare.request", "", 90, "ms", 1.0),
        Row("provider.8.bare.memory", "", 300, "KB", 1.0),
    ]
    assert {curve.kind: curve.points for curve in provider_curves(rows, "request")} == {
        "bare": ((1, 100), (8, 90)),
        "product": ((1, 50),),
        "remote": (),
    }
    written = section(rows, "Measured today.")
    assert "| product | 50.00 ms (0.50x) |  |" in written
    assert "| plain graph |  | 300.0 KB |" in written


def test_the_section_of_stores_leaves_out_servers_that_are_not_installed() -> None:
    rows = [
        Row("stores.memory.memory", "", 50, "ms", 1.0),
        Row("stores.sqlite.memory", "", 55, "ms", 1.1),
        Row("stores.redis.memory", "", 60, "ms", 1.2),
        Row("stores.redis.memory.server", "", 3, "ms"),
        Row("stores.sqlite.sqlite", "", 70, "ms", 1.4),
        Row("stores.default", "", 1.4, "x"),
        Row("takeover.restart", "", 2.5, "s"),
    ]
    written = stores_section(rows, "Measured today.")
    assert "| Redis | memory | 60.00 ms (1.20x) | 3.00 ms |" in written
    assert "measured: 1.40x **not met**." in written
    assert "not installed (`make services`): Postgres, MongoDB." in written
    assert "two replicas, Postgres" not in written
    assert "Two workers" not in written
    assert stores_section([], "") == ""
