"""Client of the skills API, for the command line, the terminal and the Slack bot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote

import httpx

from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError, refusal
from ai_platform_engineering.utils.access_tokens import AccessTokenError
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.redact import redact

PAGE_SIZE: Final = 200
_SOURCE_FAILURES: Final = frozenset({"unavailable", "fetch_failed", "settings"})
"""Codes of problems of a whole source. All other problems are about a single skill."""


class SkillsApiError(SupervisorError):
    """The API refused a request. `problems` has one line for each problem of an invalid skill."""

    def __init__(self, sentence: str, status: int, problems: tuple[str, ...] = ()) -> None:
        super().__init__(sentence, refused=True)
        self.status = status
        self.problems = problems


@dataclass(frozen=True, slots=True)
class SkillPage:
    """One page of skills as the API returns them; `total` counts the skills on all pages."""

    skills: tuple[Mapping[str, Any], ...]
    total: int


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The state of a source. `problems` has one line each; `failed` means that its skills may be out of date."""

    name: str
    count: int
    problems: tuple[str, ...]
    failed: bool

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Self:
        problems = source["problems"]
        failed = any(problem["code"] in _SOURCE_FAILURES for problem in problems)
        return cls(str(source["name"]), int(source["count"]), tuple(map(_problem_line, problems)), failed)


@dataclass(frozen=True, slots=True)
class SkillsStatus:
    """The status of the catalog. `facts` is the JSON of the API."""

    facts: Mapping[str, Any]
    sources: tuple[SourceReport, ...]

    @property
    def problems(self) -> list[str]:
        return [f"{source.name}: {problem}" for source in self.sources for problem in source.problems]


class SkillsClient:
    """Methods raise `SkillsApiError` if the API refuses a request, and `SupervisorError` if no supervisor answers."""

    def __init__(self, http: httpx.AsyncClient, address: str) -> None:
        self._http = http
        self._url = address.rstrip("/")
        self._address = redact(self._url)
        """The address without credentials, for error messages."""

    async def page(self, *, query: str = "", limit: int = PAGE_SIZE, offset: int = 0) -> SkillPage:
        """Skills in order of name or, with a query, the matching skills, best match first."""
        params = {"limit": str(limit), "offset": str(offset), **({"q": query} if query else {})}
        answer = await self._json("GET", "/skills", params)
        try:
            return SkillPage(tuple(answer["skills"]), int(answer["meta"]["total"]))
        except (KeyError, TypeError, ValueError):
            raise self._unreadable() from None

    async def all(self, query: str = "") -> list[Mapping[str, Any]]:
        """The skills of all pages."""
        skills: list[Mapping[str, Any]] = []
        while True:
            page = await self.page(query=query, offset=len(skills))
            skills += page.skills
            if not page.skills or len(skills) >= page.total:
                return skills

    async def get(self, name: str, access: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """One skill with its text. `access` (visibility and team) selects it if several skills have the name."""
        found: Mapping[str, Any] = await self._json("GET", _path(name), {**(access or {}), "include_content": "true"})
        return found

    async def find(self, name: str) -> Mapping[str, Any] | None:
        """The skill with exactly this name, or None."""
        try:
            return await self.get(name)
        except SkillsApiError as error:
            if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY}:
                return None
            raise

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        stored: Mapping[str, Any] = await self._json("POST", "/skills", json=body)
        return stored

    async def replace(self, name: str, access: Mapping[str, str], etag: str, body: Mapping[str, Any]) -> Any:
        return await self._json("PUT", _path(name), access, json=body, headers={"If-Match": etag})

    async def delete(self, name: str, access: Mapping[str, str]) -> None:
        """Delete a skill, regardless of its version."""
        await self._json("DELETE", _path(name), access, headers={"If-Match": "*"})

    async def refresh(self) -> SkillsStatus:
        """Load all sources again; returns the status afterwards."""
        return self._status(await self._json("POST", "/skills/refresh"))

    async def status(self) -> SkillsStatus:
        return self._status(await self._json("GET", "/internal/supervisor/skills-status"))

    def _status(self, answer: Any) -> SkillsStatus:
        try:
            return SkillsStatus(answer, tuple(map(SourceReport.of, answer["sources"])))
        except (KeyError, TypeError, ValueError):
            raise self._unreadable() from None

    async def _json(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        *,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        options = {"params": params or None, "json": json, "headers": headers}
        try:
            response = await self._http.request(method, self._url + path, **options)
            if response.status_code == HTTPStatus.UNAUTHORIZED:
                response.raise_for_status()
        except (AccessTokenError, httpx.HTTPStatusError) as error:
            raise refusal(error, self._address, "request") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SupervisorError(
                f"There is no supervisor at {self._address} ({reason_of(error)}). Start one with "
                "`platform-engineer serve`, or check the address."
            ) from None
        if response.is_error:
            raise _refused(response, self._address)
        if response.status_code == HTTPStatus.NO_CONTENT:
            return None
        try:
            return response.json()
        except ValueError:
            raise self._unreadable() from None

    def _unreadable(self) -> SupervisorError:
        return SupervisorError(
            f"{self._address} did not answer like a skills API. Check that it is the address of a supervisor."
        )


def _path(name: str) -> str:
    return f"/skills/{quote(name, safe='')}"


def _refused(response: httpx.Response, address: str) -> SkillsApiError:
    """The error for a problem JSON response."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    detail = problem.get("detail") if isinstance(problem, dict) else None
    if not isinstance(problem, dict) or not isinstance(detail, str):
        sentence = f"The server at {address} answered with HTTP {response.status_code}; is it a supervisor with skills?"
        return SkillsApiError(sentence, response.status_code)
    return SkillsApiError(detail, response.status_code, tuple(map(_problem_line, problem.get("problems") or ())))


def _problem_line(problem: Mapping[str, Any]) -> str:
    path, message = problem.get("path"), str(problem.get("message", ""))
    return f"{path}: {message}" if path else message
