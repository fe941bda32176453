"""The knowledge base tools of the supervisor: limited in calls per question and in characters per result.

A question is one user message and everything that follows until the next user message, including answers to forms.
The number of a call is derived from the messages of its thread and stored nowhere else. So parallel calls are
distinguished by their position in the turn, a resumed run sees the same numbers, and conversations cannot affect each
other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn, Self

from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel

from ai_platform_engineering.knowledge_bases.rag.documents import datasource_of
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import DATASOURCE
from ai_platform_engineering.knowledge_bases.rag.visibility import AUDIENCE, seen_by
from ai_platform_engineering.manifest import McpServer, OnBehalfOf, SignedHeader
from ai_platform_engineering.policy.decisions import NO_POLICY, PrincipalPolicy
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.keys import opening_key

TRUNCATED: Final = "[Output truncated]"

KNOWLEDGE_BASE: Final = "knowledge base"
"""Takes the place of an agent's name. No agent can have this name."""

_KNOWLEDGE_TOOLS: Final = ("search", "fetch_document", "list_datasources", "fetch_url")

KNOWLEDGE_SERVER: Final = "ai_platform_engineering.knowledge_bases.rag.server:make_server"
"""Factory of the MCP server for a knowledge base in this process."""

_LIMIT_ARGUMENT: Final = "limit"
_EFFECTS: Final[Mapping[str, Any]] = {
    "tools": _KNOWLEDGE_TOOLS,
    "reads": _KNOWLEDGE_TOOLS,
    "sends": {"fetch_url": "url"},
}


def knowledge_servers(settings: Settings) -> dict[str, list[McpServer]]:
    """The MCP server of the knowledge base, in this process or remote; empty if `ENABLE_RAG=false`."""
    return {KNOWLEDGE_BASE: [_knowledge_server(settings)]} if settings.enable_rag else {}


class _CapCounterMixin(BaseTool):
    """A tool that may be called `max_calls` times per question. Further calls return a normal result that tells the
    model to write the answer: after an error, models tend to try the next document."""

    wrapped: BaseTool
    max_calls: int
    max_chars: int

    done: ClassVar[str]
    """Prefix of the message at the limit."""

    @classmethod
    def around(cls, tool: BaseTool, **limits: int) -> Self:
        described = {name: getattr(tool, name) for name in ("name", "description", "args_schema", "metadata")}
        return cls(wrapped=tool, **described, **limits)

    @property
    def args(self) -> dict[str, Any]:
        # A JSON schema without properties may omit the key.
        return dict(self.args_schema.get("properties") or {}) if isinstance(self.args_schema, dict) else super().args

    @property
    def cap_message(self) -> str:
        return (
            f"[{self.done}] You have reached the maximum allowed number of {self.name} calls ({self.max_calls}). "
            f"Please synthesize your answer from the documents already retrieved. Do NOT call {self.name} again."
        )

    async def _arun(self, runtime: ToolRuntime, **arguments: Any) -> str:
        if call_number(runtime.state["messages"], self.name, runtime.tool_call_id) > self.max_calls:
            return self.cap_message
        policy: PrincipalPolicy = getattr(runtime.context, "policy", None) or NO_POLICY
        _check_visible(policy, arguments)
        try:
            with seen_by(policy):
                result = await self.wrapped.ainvoke(self._adjusted(arguments), runtime.config)
        except ToolException as error:
            # An error text also goes to the model, and its length is up to the server.
            raise ToolException(truncated(str(error), self.max_chars)) from error
        return truncated(_visible(policy, result), self.max_chars)

    async def coroutine(self, runtime: ToolRuntime, **arguments: Any) -> str:
        """LangGraph reads the signature of this attribute to inject the runtime."""
        return await self._arun(runtime, **arguments)

    def _run(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} can only be called asynchronously: use ainvoke")

    def _adjusted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments


def _check_visible(policy: PrincipalPolicy, arguments: Mapping[str, Any]) -> None:
    """Raise for a document or a datasource that the caller may not see, as for one that does not exist."""
    document, datasource = arguments.get("document_id"), arguments.get("datasource")
    if isinstance(document, str) and not policy.sees("knowledge", datasource_of(document)):
        raise ToolException(f"There is no document {document!r}. Search again; documents may have changed.")
    if isinstance(datasource, str) and datasource and not policy.sees("knowledge", datasource):
        raise ToolException(f"There is no datasource {datasource!r}.")


def _visible(policy: PrincipalPolicy, result: Any) -> Any:
    """A listing without the results and datasources that the caller may not see; other results as they are."""
    if not policy.restricts("knowledge"):
        return result
    try:
        found: Any = json.loads(result)
    except (TypeError, ValueError):
        return result
    for listing, name in (("results", "datasource"), ("datasources", "name")):
        if isinstance(found, dict) and isinstance(rows := found.get(listing), list):
            found[listing] = [row for row in rows if policy.sees("knowledge", row[name])]
            return json.dumps(found)
    return result


class FetchDocumentCapWrapper(_CapCounterMixin):
    """Limits a tool that returns a whole document or page."""

    done = "Document already retrieved"


class SearchCapWrapper(_CapCounterMixin):
    """Limits a tool that lists results, to at most `max_results`: the model may want to read each of them next."""

    max_results: int

    done = "Search already done"

    def _adjusted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if _LIMIT_ARGUMENT not in self.args:
            return arguments
        return arguments | {_LIMIT_ARGUMENT: clamped(arguments.get(_LIMIT_ARGUMENT), self.max_results)}


def limit_tools(tools: Iterable[BaseTool], settings: Settings) -> list[_CapCounterMixin]:
    """Wrap the knowledge base tools with the limits of the settings."""
    return [_limit_tool(tool, settings) for tool in tools]


def _knowledge_server(settings: Settings) -> McpServer:
    if settings.rag_server_url is None:
        return McpServer(name="rag", transport="memory", module=KNOWLEDGE_SERVER, **_EFFECTS)
    key = opening_key(settings)
    headers = {"Authorization": f"Bearer ${{{key.setting}}}"} if key else {}
    user = None
    if key is not None:
        user = OnBehalfOf(signed_header=SignedHeader(key=f"${{{key.setting}}}", audience=AUDIENCE, derived=True))
    return McpServer(
        name="rag", transport="http", url=settings.rag_server_url, headers=headers, on_behalf_of=user, **_EFFECTS
    )


def _limit_tool(tool: BaseTool, settings: Settings) -> _CapCounterMixin:
    max_chars = settings.rag_max_output_chars
    if tool.name.startswith("fetch"):
        return FetchDocumentCapWrapper.around(tool, max_calls=settings.fetch_document_max_calls, max_chars=max_chars)
    return SearchCapWrapper.around(
        tool, max_calls=settings.search_max_calls, max_chars=max_chars, max_results=settings.rag_max_search_results
    )


def is_product_text(tool: str, arguments: Mapping[str, Any], text: str) -> bool:
    """Whether a result has text of the product only: its documentation, names of datasources, or a limit's message."""
    match tool:
        case "fetch_document":
            return datasource_of(str(arguments.get("document_id"))) == DATASOURCE
        case "list_datasources":
            return True
        case "search":
            try:
                rows = json.loads(text)["results"]
                return all(row["datasource"] == DATASOURCE for row in rows)
            except (KeyError, TypeError, ValueError):
                return text.startswith(f"[{SearchCapWrapper.done}]")
        case _:
            return False


def call_number(messages: Sequence[AnyMessage], tool: str, call_id: str | None) -> int:
    """The number of this call among the tool's calls for the question, from 1.

    Models may give several calls the same id; each of them then counts as the last one.
    """
    turns = turns_of_question(messages)
    earlier = sum(call["name"] == tool for turn in turns[:-1] for call in turn.tool_calls)
    latest = [call["id"] for call in turns[-1].tool_calls if call["name"] == tool] if turns else []
    positions = [position for position, known in enumerate(latest, 1) if known == call_id]
    return earlier + (positions[-1] if positions else len(latest) + 1)


def turns_of_question(messages: Sequence[BaseMessage]) -> list[AIMessage]:
    """The model's messages since the last user message."""
    turns: list[AIMessage] = []
    for message in reversed(messages):
        if message.type == "human":
            break
        if isinstance(message, AIMessage):
            turns.append(message)
    return turns[::-1]


def clamped(limit: object, maximum: int) -> int:
    """The requested number of results, limited to 1 to `maximum`; `maximum` if it is not a number."""
    try:
        number = float(limit)  # type: ignore[arg-type]  # models send any type; TypeError is expected
    except (TypeError, ValueError, OverflowError):
        return maximum
    if math.isnan(number):
        return maximum
    return int(min(max(number, 1), maximum))


def truncated(result: Any, max_chars: int) -> str:
    """The result as text of at most `max_chars` characters, plus a note if it was cut."""
    text = result_text(result)
    return text if len(text) <= max_chars else f"{text[:max_chars]}{TRUNCATED}"


def result_text(result: Any) -> str:
    """The text of a tool result: text, a message, content blocks, or any object as JSON."""
    match result:
        case str():
            return result
        case {"type": "text", "text": str(text)}:
            return text
        case BaseMessage():
            return result_text(result.content)
        case (content, _) if isinstance(result, tuple):
            # LangChain tools return (content, artifact).
            return result_text(content)
        case list() if any(_is_block(item) for item in result):
            return "\n".join(map(result_text, result))
        case _:
            return json.dumps(result, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _is_block(item: Any) -> bool:
    return isinstance(item, str | BaseMessage) or (isinstance(item, Mapping) and "type" in item)


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case bytes():
            return value.decode(errors="replace")
        case _:
            return str(value)
