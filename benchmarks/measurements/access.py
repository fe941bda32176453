"""The CPU of a request with sign-in, policy and audit record, compared with a server that is open to everybody."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final

import jwt
import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.effort import Effort, in_turns
from benchmarks.processes import started
from benchmarks.rows import Row
from benchmarks.samples import bests, middle_ratio
from benchmarks.subjects import product, together

MAX_STREAMS: Final = 8
RULES: Final = 20
"""Rules of the policy. The last ones are about the request."""
OPEN: Final = "open"
PROTECTED: Final = "protected"
_LABELS: Final = {
    OPEN: "CPU per request: open to everybody, no audit record",
    PROTECTED: "CPU per request: access tokens, policy, audit record",
}
_AUDIENCE: Final = "platform-engineer"


def access(effort: Effort) -> list[Row]:
    with ExitStack() as stack:
        model = stack.enter_context(started("benchmarks.provider.server"))
        settings, token = stack.enter_context(_protection())
        wanted = {
            OPEN: product({"AUDIT": "false"}, provider=model.url),
            PROTECTED: product(settings, provider=model.url, bearer=token),
        }
        found = stack.enter_context(together(wanted))
        streams = min(MAX_STREAMS, max(effort.streams))
        rounds = in_turns(found, effort.rounds, 4 * streams, streams=streams)
    best, ratio = bests(rounds), middle_ratio(rounds, PROTECTED, to=OPEN)
    rows = [Row(f"access.{name}", label, best[name].cpu_ms, "ms") for name, label in _LABELS.items()]
    return [*rows, Row("access.ratio", "Access tokens, policy and audit record compared with none", ratio, "x")]


@contextmanager
def _protection() -> Iterator[tuple[Mapping[str, str], str]]:
    """The settings of a server that requires access tokens of an issuer, and a token for it."""
    key = ec.generate_private_key(ec.SECP256R1())
    public: dict[str, Any] = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
    with _issuer(public | {"kid": "k1", "alg": "ES256", "use": "sig"}) as issuer, TemporaryDirectory() as folder:
        now = int(time.time())
        claims = {"iss": issuer, "aud": _AUDIENCE, "sub": "ada", "groups": ["team-1"], "iat": now, "exp": now + 86_400}
        policy = Path(folder, "policy.yaml")
        policy.write_text(yaml.safe_dump(_policy()))
        settings = {"A2A_OAUTH_ISSUER": issuer, "A2A_OAUTH_AUDIENCE": _AUDIENCE, "POLICY_FILE": str(policy)}
        yield settings, jwt.encode(claims, key, "ES256", headers={"kid": "k1"})


def _policy() -> dict[str, Any]:
    others = [
        {"who": [f"group:team-{number}"], "tools": [f"jira.*_{number}(project=P{number}*)"], "action": "deny"}
        for number in range(1, RULES - 1)
    ]
    matching = [
        {"who": ["group:team-1"], "knowledge": ["hr"], "action": "deny"},
        {"who": ["group:team-1"], "tools": ["argocd.*"], "action": "allow"},
    ]
    return {"version": 1, "rules": [*others, *matching]}


@contextmanager
def _issuer(key: Mapping[str, Any]) -> Iterator[str]:
    """An OAuth2 issuer that publishes one key."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            base = f"http://127.0.0.1:{self.server.server_address[1]}"
            published = {"keys": [key]} if self.path == "/keys" else {"issuer": base, "jwks_uri": f"{base}/keys"}
            body = json.dumps(published).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """The requests are of no interest."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
