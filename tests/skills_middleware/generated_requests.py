"""Requests that Schemathesis generates for the skills API, conforming and not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS: Final[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BOUNDED: Final = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


def strategies(operation: APIOperation[Any, Any, Any], stored: str, skill: Mapping[str, Any]) -> Iterator[Any]:
    yield operation.as_strategy(GenerationMode.POSITIVE)
    yield operation.as_strategy(GenerationMode.NEGATIVE)
    if "{name}" in operation.path:
        # Generated names are those of no skill.
        path = {"name": stored} | ({"path": "notes.md"} if "{path}" in operation.path else {})
        yield operation.as_strategy(GenerationMode.POSITIVE, path_parameters=path)
        if operation.method == "put":
            headers = {"If-Match": "*"}
            yield operation.as_strategy(
                path_parameters=path, query={}, headers=headers, body=skill, media_type="application/json"
            )


def exercise(
    url: str, headers: dict[str, str], stored: str, skill: Mapping[str, Any], examples: int
) -> set[tuple[str, int]]:
    """Every operation with its statuses; an answer that is not as documented raises."""
    bounded = settings(BOUNDED, max_examples=examples)
    seen: set[tuple[str, int]] = set()

    def answer(case: Case) -> None:
        response = case.call(headers=headers)
        seen.add((f"{case.method} {case.operation.path}", response.status_code))
        case.validate_response(response, checks=CHECKS, headers=headers)

    api = schemathesis.openapi.from_url(f"{url}/openapi.json", headers=headers)
    for operation in sorted(
        (found.ok() for found in api.get_all_operations()), key=lambda each: each.method == "delete"
    ):
        for strategy in strategies(operation, stored, skill):
            # An operation without parameters has no requests that do not conform.
            with suppress(Unsatisfiable):
                bounded(given(strategy)(answer))()
    return seen
