"""Classification of the exceptions of provider packages as kinds of failure.

An exception is recognised by its attributes and class names, so no provider package is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from langchain_core.exceptions import ContextOverflowError

from ai_platform_engineering.llm.failures import Kind, ModelFailure
from ai_platform_engineering.llm.retry_after import retry_after
from ai_platform_engineering.utils.redact import MASK, redact

MAX_DETAIL_LENGTH: Final = 500

# In order of precedence. A name takes precedence over the HTTP status. Names are compared without case and punctuation,
# as every package writes them differently.
_NAMES: Final[tuple[tuple[Kind, frozenset[str]], ...]] = (
    ("context", frozenset({"contextlengthexceeded", "contextwindowexceedederror", "requesttoolarge"})),
    (
        "quota",
        frozenset({"insufficientquota", "billinghardlimitreached", "billingerror", "budgetexceedederror"})
        | {"servicequotaexceededexception", "billingnotactive"},
    ),
    (
        "policy",
        frozenset({"contentfilter", "contentpolicyviolation", "contentpolicyviolationerror"})
        | {"responsibleaipolicyviolation", "contentfilterfinishreasonerror", "guardrailraisedexception"},
    ),
    ("model", frozenset({"modelnotfound", "deploymentnotfound", "modeldecommissioned", "resourcenotfoundexception"})),
    (
        "key",
        frozenset({"invalidapikey", "apikeyinvalid", "authenticationerror", "unauthenticated", "incorrectapikey"})
        | {"unrecognizedclientexception", "invalidsignatureexception", "incompletesignatureexception"}
        | {"expiredtokenexception", "invalidclienttokenid", "missingauthenticationtokenexception"}
        | {"nocredentialserror", "partialcredentialserror", "credentialretrievalerror", "tokenretrievalerror"}
        | {"unauthorizedssotokenerror", "ssotokenloaderror", "profilenotfound", "credentialserror"}
        | {"defaultcredentialserror", "refresherror", "oautherror"},
    ),
    ("permission", frozenset({"accessdeniedexception", "permissiondenied", "permissionerror"})),
    (
        "rate_limit",
        frozenset({"ratelimitexceeded", "ratelimiterror", "throttlingexception", "toomanyrequestsexception"})
        | {"resourceexhausted", "throttled", "modelratelimiterror"},
    ),
    (
        "overloaded",
        frozenset({"overloadederror", "serviceunavailableexception", "modelnotreadyexception"})
        | {"serviceunavailableerror", "unavailable", "engineoverloaded", "serveroverloaded"},
    ),
    ("timeout", frozenset({"modeltimeoutexception", "deadlineexceeded", "requesttimeout"})),
)
# Generic names of server errors. The HTTP status takes precedence over them.
_SERVER_NAMES: Final = frozenset(
    {"internalserverexception", "modelerrorexception", "modelstreamerrorexception"}
    | {"internalservererror", "servererror", "apierror", "internal"}
)
_STATUSES: Final[Mapping[int, Kind]] = {
    401: "key",
    402: "quota",
    403: "permission",
    404: "model",
    408: "timeout",
    413: "context",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
# Class names of connection problems, of httpx, aiohttp, botocore, urllib3 and the providers' own packages.
_CLASSES: Final[tuple[tuple[Kind, frozenset[str]], ...]] = (
    (
        "timeout",
        frozenset({"TimeoutError", "TimeoutException", "APITimeoutError", "Timeout"})
        | {"ReadTimeoutError", "ConnectTimeoutError"},
    ),
    ("unreadable", frozenset({"JSONDecodeError", "APIResponseValidationError", "UnknownApiResponseError"})),
    (
        "unreachable",
        frozenset({"ConnectionError", "TransportError", "APIConnectionError", "ClientConnectionError"})
        | {"ClientPayloadError", "HTTPClientError", "ProtocolError", "MidStreamFallbackError"},
    ),
)

# Some providers have one error type for all rejected requests, which only differ in the message.
_PHRASES: Final[tuple[tuple[Kind, str], ...]] = (
    (
        "context",
        r"prompt is too long|input is too long|maximum context length|context window|context length"
        r"|exceeds the maximum number of tokens|reduce the length of the messages",
    ),
    ("quota", r"credit balance is too low|insufficient_quota"),
    ("policy", r"content filtering policy|content management policy|content_policy_violation"),
    ("key", r"api key not valid|api key expired"),
    ("model", r"model identifier is invalid|model .{0,80}not (?:found|exist)|on-demand throughput isn"),
)
_GENERIC: Final = frozenset({"request", "rate_limit", "server"})

# The packages whose exceptions are known to come from a model, by the root of their module.
_PACKAGES: Final[Mapping[str, str]] = {
    "openai": "OpenAI",
    "langchain_openai": "OpenAI",
    "anthropic": "Anthropic",
    "langchain_anthropic": "Anthropic",
    "botocore": "Amazon Bedrock",
    "langchain_aws": "Amazon Bedrock",
    "google": "Google",
    "langchain_google_genai": "Google",
    "groq": "Groq",
    "ollama": "Ollama",
    "litellm": "LiteLLM",
}


def model_failure(error: BaseException) -> ModelFailure | None:
    """The failure behind an exception of a provider package; None if the provider did not cause it."""
    chain = [*_chain(error)]
    status = next((code for link in chain if (code := _status(link)) is not None), None)
    names = {name for link in chain for name in _names(link)}
    classes = {parent.__name__ for link in chain for parent in type(link).__mro__}
    headers = next((values for link in chain if (values := _headers(link))), {})
    wait = retry_after(headers, [detail for link in chain for detail in _details(link)], limited=status == 429)
    # The error of the HTTP client only repeats the status.
    text = "; ".join(dict.fromkeys(str(link) for link in chain if type(link).__name__ != "HTTPStatusError"))
    kind = _kind(error, status, names, classes)
    if kind in _GENERIC:
        # A rate limit with a retry time stays a rate limit, even if its message mentions a quota.
        phrase = next((found for found, pattern in _PHRASES if re.search(pattern, text, re.IGNORECASE)), None)
        kind = phrase if phrase and not (kind == "rate_limit" and wait is not None) else kind
    return None if kind is None else ModelFailure(kind, status, wait, detail=one_line(text))


def provider_of(error: BaseException) -> str | None:
    """The provider whose package raised the exception; None for other packages."""
    modules = (parent.__module__.partition(".")[0] for link in _chain(error) for parent in type(link).__mro__)
    return next((_PACKAGES[module] for module in modules if module in _PACKAGES), None)


def one_line(text: str) -> str:
    """A provider's message as one log line. Providers quote a wrong key partly masked; here it is masked completely."""
    line = re.sub(r"\S*\*{3,}\S*", MASK, redact(" ".join(text.split())))
    return line if len(line) <= MAX_DETAIL_LENGTH else f"{line[:MAX_DETAIL_LENGTH]}…"


def _kind(error: BaseException, status: int | None, names: set[str], classes: set[str]) -> Kind | None:
    if isinstance(error, ContextOverflowError):
        return "context"
    if named := next((kind for kind, known in _NAMES if names & known), None):
        return named
    if status is not None:
        return _STATUSES.get(status) or ("server" if status >= 500 else "request")
    if names & _SERVER_NAMES:
        return "server"
    # The OpenAI SDK reports every lost connection of aiohttp as a timeout.
    if "ClientConnectionError" in classes and "TimeoutError" not in classes:
        return "unreachable"
    return next((kind for kind, known in _CLASSES if classes & known), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, as packages wrap the exceptions of their HTTP client."""
    link: BaseException | None = error
    for _ in range(6):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


def _status(error: BaseException) -> int | None:
    if type(error).__module__.startswith("aiohttp.http_exceptions"):
        return None  # an error of aiohttp's parser, not a status of the server
    candidates = [
        getattr(error, "status_code", None),
        getattr(error, "code", None),
        getattr(getattr(error, "response", None), "status_code", None),
        _path(getattr(error, "response", None), "ResponseMetadata", "HTTPStatusCode"),
        _path(getattr(error, "body", None), "error", "code"),
    ]
    # An error inside of a stream has the status of the stream, which is below 400.
    return next((int(found) for found in candidates if isinstance(found, int) and found >= 400), None)


def _names(error: BaseException) -> Iterator[str]:
    """The error types and codes in the exception, normalised."""
    yield _name(type(error).__name__)
    sources = [getattr(error, "body", None), getattr(error, "details", None), getattr(error, "response", None)]
    plain = [getattr(error, field, None) for field in ("code", "type", "status", "reason")]
    for value in [*plain, *(value for source in sources for value in _identifiers(source))]:
        if isinstance(value, str):
            yield _name(value)


def _identifiers(source: Any, depth: int = 4) -> Iterator[Any]:
    if depth and isinstance(source, list):
        for item in source:
            yield from _identifiers(item, depth - 1)
    if depth and isinstance(source, Mapping):
        for key, value in source.items():
            if key in {"code", "Code", "type", "status", "reason", "__type"}:
                yield value
            elif key in {"error", "Error", "details", "innererror"}:
                yield from _identifiers(value, depth - 1)


def _name(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())


def _headers(error: BaseException) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    candidates = [
        getattr(response, "headers", None),
        _path(response, "ResponseMetadata", "HTTPHeaders"),
        getattr(error, "litellm_response_headers", None),
    ]
    for found in candidates:
        if isinstance(found, Mapping) and found:
            return {str(name): str(value) for name, value in found.items()}
    return {}


def _details(error: BaseException) -> Iterator[Any]:
    """Google's error details, which may contain a `RetryInfo`."""
    for source in (getattr(error, "details", None), getattr(error, "body", None)):
        found = source if isinstance(source, list) else _path(source, "error", "details")
        yield from found if isinstance(found, list) else ()


def _path(source: Any, *keys: str) -> Any:
    for key in keys:
        source = source.get(key) if isinstance(source, Mapping) else None
    return source
