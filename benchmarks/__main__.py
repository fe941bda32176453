"""Runs the measurements and prints them as a table."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml
from rich.console import Console
from rich.table import Table

from benchmarks.scenario import MANIFEST, QUESTION

REQUESTS = 60
ROUNDS = 3
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    cpu_ms: float
    wall_ms: float
    first_event_ms: float | None = None
    first_answer_ms: float | None = None
    resident_mb: float | None = None


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        manifests = Path(folder, "agents")
        manifests.mkdir()
        Path(manifests, "argocd.yaml").write_text(
            yaml.safe_dump(MANIFEST.model_dump(mode="json", exclude_defaults=True))
        )
        base = {"DATA_DIR": folder, "LOG_LEVEL": "warning", "SANDBOX": "false", "AGENTS_DIR": str(manifests)}
        # Rounds alternate, so that a busy moment of the machine does not fall on one side only.
        bare, local, remote = [], [], []
        for _ in range(ROUNDS):
            bare.append(_bare())
            with _served("supervisor", base) as supervisor:
                local.append(asyncio.run(_requests(supervisor)))
            with _served("agent", base) as agent:
                environ = {**base, "DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent.url}
                with _served("supervisor", environ) as supervisor:
                    remote.append(asyncio.run(_requests(supervisor, agent)))
    _print(_best(bare), {"in-process": _best(local), "remote agent": _best(remote)})


@dataclass(frozen=True)
class Process:
    pid: int
    url: str

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def _served(what: str, environ: Mapping[str, str]) -> Iterator[Process]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serve", what],
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield Process(process.pid, process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait(10)


def _bare() -> Measured:
    command = [sys.executable, "-m", "benchmarks.bare", str(REQUESTS)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Measured(**json.loads(output))


async def _requests(*processes: Process) -> Measured:
    """The cost of a request in all the processes it goes through."""
    url = processes[0].url
    async with httpx.AsyncClient(timeout=30) as http:
        for number in range(5):
            await _request(http, url, f"warm-{number}")
        cpu = sum(process.cpu_seconds() for process in processes)
        started = time.perf_counter()
        firsts = [await _request(http, url, str(number)) for number in range(REQUESTS)]
        wall = time.perf_counter() - started
        spent = sum(process.cpu_seconds() for process in processes) - cpu
    return Measured(
        cpu_ms=spent / REQUESTS * 1000,
        wall_ms=wall / REQUESTS * 1000,
        first_event_ms=sorted(first for first, _ in firsts)[REQUESTS // 2],
        first_answer_ms=sorted(answer for _, answer in firsts)[REQUESTS // 2],
        resident_mb=processes[0].resident_mb(),
    )


async def _request(http: httpx.AsyncClient, url: str, number: str) -> tuple[float, float]:
    """Milliseconds to the first event and to the first words of the answer."""
    message = {"role": "user", "parts": [{"kind": "text", "text": QUESTION}], "messageId": number}
    body = {"jsonrpc": "2.0", "id": number, "method": "message/stream", "params": {"message": message}}
    started = time.perf_counter()
    first = answer = 0.0
    agent_done = ended = False
    async with http.stream("POST", url, json=body) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data:"):
                continue
            first = first or time.perf_counter()
            agent_done = agent_done or '"agent_finished"' in line
            if agent_done and not answer and '"text_delta"' in line:
                answer = time.perf_counter()
            ended = ended or '"completed"' in line
    assert ended, "a request did not complete"
    return (first - started) * 1000, (answer - started) * 1000


def _best(rounds: list[Measured]) -> Measured:
    return min(rounds, key=lambda measured: measured.cpu_ms)


def _print(bare: Measured, ours: Mapping[str, Measured]) -> None:
    table = Table(title=f"One request, five model turns (best of {ROUNDS} rounds of {REQUESTS})")
    for column in ("", "CPU ms", "against bare", "wall ms", "first event ms", "first answer ms", "resident MB"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("create_deep_agent, no server", f"{bare.cpu_ms:.1f}", "1.00x", f"{bare.wall_ms:.1f}", "", "", "")
    for name, measured in ours.items():
        table.add_row(
            f"product, {name}",
            f"{measured.cpu_ms:.1f}",
            f"{measured.cpu_ms / bare.cpu_ms:.2f}x",
            f"{measured.wall_ms:.1f}",
            f"{measured.first_event_ms:.1f}",
            f"{measured.first_answer_ms:.1f}",
            f"{measured.resident_mb:.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
