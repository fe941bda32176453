"""The verified caller of a request, as runs get it."""

from __future__ import annotations

from ai_platform_engineering.identity.principal import ANONYMOUS, KEY_HOLDER, Principal
from ai_platform_engineering.utils.a2a_common.server.incoming import request_context
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from tests.oauth_issuer import issuing
from tests.utils.a2a_common.serving import Served, message_0_3, message_1_0, serving

KEY = "correct-horse-battery"
FORGED = {"caller": "admin", "subject": "admin", "state": {"caller": "admin"}}


def watched(served: Served) -> list[Principal]:
    """The callers of the runs to come."""
    callers: list[Principal] = []
    execute = served.executor.execute

    async def watching(assignment: Assignment) -> bool:
        callers.append(request_context(assignment.request, assignment.task_id, assignment.context_id).caller)
        return await execute(assignment)

    served.executor.execute = watching  # type: ignore[method-assign]
    return callers


async def send(served: Served, token: str) -> None:
    """The same question over JSON-RPC and REST, with claims about the caller wherever a client can write."""
    headers = {"Authorization": f"Bearer {token}", "caller": "admin", "x-caller": "admin"}
    params = message_0_3("hello", metadata=FORGED) | {"metadata": FORGED}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    answers = [
        await served.http.post(served.url, json=call, headers=headers),
        await served.http.post(
            f"{served.url}/message:send", json=message_1_0("hello", metadata=FORGED), headers=headers
        ),
    ]
    assert [answer.status_code for answer in answers] == [200, 200]


async def test_a_run_knows_the_caller_that_was_verified() -> None:
    async with issuing() as issuer, serving(A2A_OAUTH_ISSUER=issuer.url, A2A_AUTH_SHARED_KEY=KEY) as served:
        callers = watched(served)
        for token in (KEY, issuer.token(sub="ada", teams=["sre"])):
            await send(served, token)
    assert callers[0::2] == callers[1::2] == [KEY_HOLDER, Principal("token", "ada")]


async def test_a_server_without_a_key_knows_no_caller() -> None:
    async with serving() as served:
        callers = watched(served)
        await send(served, KEY)
    assert callers == [ANONYMOUS, ANONYMOUS]
