"""Which answers of a tool are an error of the backend, and which are answers about errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ai_platform_engineering.mcp.backend_errors import backend_error, is_empty, reason_in

GRPC = {"error": "no session information", "code": 16, "message": "no session information"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (GRPC, "no session information"),
        ({"success": False, "error": "Request aborted: not logged in.", "results": []}, "Request aborted"),
        ({"success": False, "error_code": "E601", "message": "Network issue.", "server_version": "0.2.0"}, "Network"),
        ({"success": False, "error": "", "user_identifier": "abc"}, "did not succeed"),
        ({"ok": False, "error": "invalid_auth"}, "invalid_auth"),
        ({"error": "Failed to get child pages: Unauthorized (401)"}, "Unauthorized"),
        ({"error": {"code": 401, "message": "Expired.", "status": "UNAUTHENTICATED"}}, "Expired."),
        ({"message": "Bad credentials", "documentation_url": "https://docs.test", "status": "401"}, "Bad credentials"),
        ({"message": "401 Unauthorized"}, "401 Unauthorized"),
        ({"statusCode": 403, "message": "Forbidden"}, "Forbidden"),
        ({"type": "about:blank", "title": "Forbidden", "status": 403, "detail": "No access."}, "No access."),
        ({"errorMessages": ["Issue does not exist."], "errors": {}}, "Issue does not exist."),
        ({"errors": [{"message": "Not authorized"}], "data": None}, "Not authorized"),
        ({"queryId": "q-1", "status": "Error", "message": "Denied.", "results": []}, "Denied."),
        (
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": "pods is forbidden",
                "code": 403,
            },
            "pods is forbidden",
        ),
        ("401 Unauthorized", "401"),
        ("HTTP Error 403: Forbidden", "403"),
        ("Error: Request failed with status code 500", "500"),
        ("401 Client Error: Unauthorized for url: http://127.0.0.1/rest", "401"),
        (
            "Client error '403 Forbidden' for url 'http://127.0.0.1/x'\nFor more information check: http://127.0.0.1/403",
            "403",
        ),
        ('GitLab API error: 401 Unauthorized\n{"message": "401 Unauthorized"}', "401"),
    ],
)
def test_an_answer_that_is_nothing_but_an_error_has_failed(answer: str | Mapping[str, Any], reason: str) -> None:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    found = backend_error(text, arguments={"query_id": "q-1"})
    assert found is not None
    assert reason in found
    assert backend_error("", {"result": text}, {"query_id": "q-1"}) == found


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"items": [], "errors": []},
        {"errors": []},
        {"errors": ["line 3: 401 Unauthorized", "line 9: timeout"]},
        {"errors": [{"message": "disk full"}], "data": {"viewer": "ann"}},
        [{"error": "401 Unauthorized", "line": 3}],
        {"lines": ["401 Unauthorized"], "message": "1 line"},
        {"url": "http://shop.test", "status": 500, "reason": "Internal Server Error", "milliseconds": 12},
        {"key": "SHOP-1", "summary": "401 Unauthorized", "status": "Open", "message": "401 Unauthorized"},
        {"title": "401 Unauthorized", "status": "open"},
        {"alert": "error", "message": "Disk full", "status": "error"},
        {"timestamp": "2026-11-16T10:00:00Z", "status": "error", "message": "payment refused"},
        {"id": 7, "state": "failed", "error": "OOMKilled"},
        {"ok": False, "checks": [{"name": "database", "ok": False}]},
        {"status": "failed", "message": "Deployment was rolled back"},
        {"code": 200, "message": "OK"},
        "500 pods are running",
        "401 Unauthorized\n401 Unauthorized\n200 OK",
        "The deployment failed with 403 Forbidden because the role lacks a permission.",
        "Error: connection refused",
        "<!DOCTYPE html><html><body>401 Unauthorized</body></html>",
    ],
)
def test_an_answer_about_errors_is_an_answer(answer: Any) -> None:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    assert backend_error(text) is None


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        ("[]", True),
        ("{}", True),
        ('{"result":[]}', True),
        ('{"items":[],"metadata":{"totalItems":0}}', True),
        ('{"items":[],"warnings":["old"]}', False),
        ('{"name":"shop"}', False),
        ("[0]", False),
        ("no lines", False),
    ],
)
def test_an_answer_without_anything_in_it_is_empty(text: str, empty: bool) -> None:
    assert is_empty(text) is empty


def test_the_reason_is_taken_out_of_an_error_in_json() -> None:
    assert reason_in(json.dumps({"error": {"message": "The token has expired."}}, indent=1)) == "The token has expired."
    assert reason_in("Authentication failed (401).") == "Authentication failed (401)."
