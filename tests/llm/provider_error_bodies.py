"""What providers answer when a request fails, as they document or send it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai_platform_engineering.llm.failures import Kind
from ai_platform_engineering.settings import Provider
from tests.llm.failing_provider import Reply


def _openai(status: int, kind: str, code: str | None, message: str, **headers: str) -> Reply:
    return Reply(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, headers)


def _azure(status: int, code: str, message: str, **more: Any) -> Reply:
    return Reply(status, {"error": {"code": code, "message": message, **more}})


def _anthropic(status: int, kind: str, message: str, **headers: str) -> Reply:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
    return Reply(status, body, headers)


def _bedrock(status: int, kind: str, message: str) -> Reply:
    return Reply(status, {"message": message}, {"x-amzn-ErrorType": kind})


def _google(status: int, name: str, message: str, *details: Mapping[str, Any]) -> Reply:
    error = {"code": status, "message": message, "status": name, "details": [*details]}
    return Reply(status, {"error": error})


_TYPE = "type.googleapis.com/google.rpc"
_LIMIT = "Rate limit reached for gpt-5 on tokens per min (TPM): Limit 30000, Used 29800, Requested 1200."
_OPENAI: Mapping[Kind, Reply] = {
    "key": _openai(
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided: sk-do-no**************-123. You can find your API key in the dashboard.",
    ),
    "permission": _openai(403, "insufficient_permissions", None, "You have insufficient permissions."),
    "model": _openai(404, "invalid_request_error", "model_not_found", "The model `m` does not exist."),
    "quota": _openai(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."),
    "rate_limit": _openai(429, "tokens", "rate_limit_exceeded", _LIMIT, **{"Retry-After": "45"}),
    "context": _openai(
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.",
    ),
    "policy": _openai(400, "invalid_request_error", "content_policy_violation", "Your request was rejected."),
    "request": _openai(400, "invalid_request_error", "unsupported_value", "Unsupported value: 'temperature'."),
    "server": _openai(500, "server_error", None, "The server had an error while processing your request."),
    "overloaded": _openai(503, "service_unavailable", None, "The engine is currently overloaded."),
}

BODIES: Mapping[Provider, Mapping[Kind, Reply]] = {
    "openai": _OPENAI,
    "azure-openai": {
        "key": _azure(401, "401", "Access denied due to invalid subscription key or wrong API endpoint."),
        "model": _azure(404, "DeploymentNotFound", "The API deployment for this resource does not exist."),
        "rate_limit": Reply(
            429,
            {"error": {"code": "429", "message": "Requests have exceeded the token rate limit."}},
            {"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "7"}
            | {"x-ratelimit-reset-tokens": "45s", "x-ratelimit-remaining-tokens": "0"},
        ),
        "context": _OPENAI["context"],
        "policy": _azure(
            400,
            "content_filter",
            "The response was filtered due to the prompt triggering the content management policy.",
            innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}},
        ),
        "server": _azure(500, "InternalServerError", "Internal server error"),
    },
    "anthropic-claude": {
        "key": _anthropic(401, "authentication_error", "invalid x-api-key"),
        "permission": _anthropic(403, "permission_error", "Your API key does not have permission."),
        "model": _anthropic(404, "not_found_error", "model: m"),
        "quota": _anthropic(
            400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
        ),
        "rate_limit": _anthropic(
            429, "rate_limit_error", "This request would exceed your rate limit.", **{"retry-after": "45"}
        ),
        "context": _anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        "policy": _anthropic(400, "invalid_request_error", "Output blocked by content filtering policy"),
        "server": _anthropic(500, "api_error", "Internal server error"),
        "overloaded": _anthropic(529, "overloaded_error", "Overloaded"),
    },
    "aws-bedrock": {
        "key": _bedrock(403, "UnrecognizedClientException", "The security token in the request is invalid."),
        "permission": _bedrock(403, "AccessDeniedException", "You don't have access to the model."),
        "model": _bedrock(400, "ValidationException", "The provided model identifier is invalid."),
        "quota": _bedrock(400, "ServiceQuotaExceededException", "Your request exceeds the service quota."),
        "rate_limit": _bedrock(429, "ThrottlingException", "Too many tokens, please wait before trying again."),
        "context": _bedrock(400, "ValidationException", "Input is too long for requested model."),
        "server": _bedrock(500, "InternalServerException", "The server encountered an unexpected condition."),
        "overloaded": _bedrock(503, "ServiceUnavailableException", "Too many connections."),
    },
    "google-gemini": {
        "key": _google(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            {"@type": f"{_TYPE}.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
        ),
        "permission": _google(403, "PERMISSION_DENIED", "Your project has been denied access."),
        "model": _google(404, "NOT_FOUND", "models/m is not found for API version v1beta."),
        "rate_limit": _google(
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
            {"@type": f"{_TYPE}.QuotaFailure", "violations": [{"quotaId": "PerMinutePerProject"}]},
            {"@type": f"{_TYPE}.RetryInfo", "retryDelay": "45s"},
        ),
        "context": _google(
            400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed."
        ),
        "server": _google(500, "INTERNAL", "An internal error has occurred."),
        "overloaded": _google(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    },
    "groq": {
        "key": _openai(401, "invalid_request_error", "invalid_api_key", "Invalid API Key"),
        "model": _openai(400, "invalid_request_error", "model_decommissioned", "The model has been decommissioned."),
        "rate_limit": _openai(429, "tokens", "rate_limit_exceeded", _LIMIT, **{"retry-after": "45"}),
        "context": _openai(
            400, "invalid_request_error", "context_length_exceeded", "Please reduce the length of the messages."
        ),
        "server": _openai(500, "internal_server_error", None, "Internal Server Error"),
        "overloaded": _openai(503, "service_unavailable", None, "Service Unavailable"),
    },
    "ollama": {
        "model": Reply(404, {"error": "model 'm' not found"}),
        "server": Reply(500, {"error": "llama runner process has terminated: exit status 2"}),
        "overloaded": Reply(503, {"error": "server busy, please try again. maximum pending requests exceeded"}),
    },
    "litellm": {kind: reply for kind, reply in _OPENAI.items() if kind != "permission"},
}
