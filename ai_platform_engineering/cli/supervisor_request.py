"""One request of a command to a running supervisor, with the sentence for each way in which it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError, refusal
from ai_platform_engineering.utils.access_tokens import AccessTokenError
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.redact import redact
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth

_TIMEOUT: Final = 60.0


async def supervisor_json(
    method: str, url: str, path: str, settings: Settings, params: Mapping[str, str], expected: str
) -> Mapping[str, Any]:
    """The JSON object of the response, which has the key `expected`. Raises `SupervisorError`."""
    address = redact(url)
    try:
        async with httpx.AsyncClient(auth=SupervisorAuth(settings, url), timeout=_TIMEOUT) as http:
            response = await http.request(method, f"{url.rstrip('/')}{path}", params=dict(params) or None)
        if response.status_code == httpx.codes.UNAUTHORIZED:
            response.raise_for_status()
    except (AccessTokenError, httpx.HTTPStatusError) as error:
        raise refusal(error, address, "request") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SupervisorError(
            f"There is no supervisor at {address} ({reason_of(error)}). Check the address; if none is running, leave "
            "--url out."
        ) from None
    answer = _json_object(response)
    if response.is_success and expected in answer:
        return answer
    sentence = answer.get("message") or f"{address} answered with HTTP {response.status_code}; is it a supervisor?"
    raise SupervisorError(str(sentence), refused=True)


def _json_object(response: httpx.Response) -> Mapping[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
