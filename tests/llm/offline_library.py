"""The repository's documentation behind the two tools of a knowledge base, and a loop that drives a model with them.

Results have the shape in which the real server gives them. Which places a search finds is up to the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException

from ai_platform_engineering.knowledge_bases.rag.chunking import chunks_of
from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.results import SearchResult, SearchResults
from ai_platform_engineering.knowledge_bases.rag.snippets import snippet
from ai_platform_engineering.knowledge_bases.rag.views import DocumentView
from tests.llm.offline_world import run_agent, supervisor_tools, text, tool

ROOT = Path(__file__).parents[2]
MAX_OUTPUT = 10_000


def document(path: str, content: str | None = None, link: str | None = None) -> Document:
    content = (ROOT / path).read_text() if content is None else content
    title = next((line[2:] for line in content.splitlines() if line.startswith("# ")), path)
    return Document("docs", path, title, content, link or path)


def cut(result: str) -> str:
    return result if len(result) <= MAX_OUTPUT else f"{result[:MAX_OUTPUT]}[Output truncated]"


class Library:
    """Finds the given places, each "path" or "path > section", whatever is asked; the first is the best."""

    def __init__(self, *places: str, more: Sequence[Document] = (), problem: str | None = None) -> None:
        self.places = [place.partition(" > ") for place in places]
        self.more = {item.path: item for item in more}
        self.problem = problem

    def document(self, path: str) -> Document:
        return self.more.get(path) or document(path)

    def search(self, query: str, limit: int = 5) -> str:
        if self.problem is not None:
            raise ToolException(self.problem)
        results = [
            self._result(self.document(path), section, query, 1 - 0.05 * rank)
            for rank, (path, _, section) in enumerate(self.places[:limit])
        ]
        note = None if results else "Nothing was found."
        return cut(SearchResults(query=query, results=results, note=note).model_dump_json(exclude_none=True))

    def fetch_document(self, document_id: str) -> str:
        return cut(DocumentView.of(self.document(document_id.partition(":")[2])).page())

    def tools(self) -> list[BaseTool]:
        limit = {"type": "integer", "description": "How many results"}
        return [
            *supervisor_tools(),
            tool(
                "search",
                "Search the knowledge base.",
                {"query": text("What to look for"), "limit": limit},
                self.search,
                required=["query"],
            ),
            tool(
                "fetch_document",
                "Read a document of the knowledge base.",
                {"document_id": text("The document_id of a search result")},
                self.fetch_document,
                required=["document_id"],
            ),
            tool("list_datasources", "List what the knowledge base was made from.", {}, lambda: '{"datasources":[]}'),
            tool(
                "fetch_url",
                "Read a web page that is not in the knowledge base.",
                {"url": text("Address of the page")},
                str,
                required=["url"],
            ),
        ]

    def _result(self, found: Document, section: str, query: str, score: float) -> SearchResult:
        chunks = [chunk for chunk in _chunks(found) if chunk.section.endswith(section)]
        chunk = max(chunks, key=lambda each: snippet(each.text, query).count("**"))
        return SearchResult(
            document_id=found.document_id,
            title=found.title,
            section=chunk.section,
            datasource=found.datasource,
            link=found.link,
            score=score,
            snippet=snippet(chunk.text, query),
        )


@cache
def _chunks(found: Document) -> tuple[Chunk, ...]:
    return tuple(chunks_of(found))


def consult(
    model: BaseChatModel,
    question: str,
    library: Library,
    history: Sequence[BaseMessage] = (),
    results: Mapping[str, str] | None = None,
) -> list[BaseMessage]:
    """All messages of a conversation after one more question. `results` stand for what tools would have returned."""
    messages: list[BaseMessage] = [*history, HumanMessage(question)]
    tools = library.tools()
    by_name = {item.name: item for item in tools}
    bound = model.bind_tools(tools)
    for _ in range(6):
        reply = bound.invoke([SystemMessage("You are the supervisor."), *messages])
        messages.append(reply)
        if not reply.tool_calls:
            return messages
        for call in reply.tool_calls:
            status = "success"
            if call["name"] == "task":
                content = str(run_agent(model, call["args"]["subagent_type"], call["args"]["description"])[-1].text)
            elif results and call["name"] in results:
                content = results[call["name"]]
            else:
                try:
                    content = str(by_name[call["name"]].invoke(call["args"]))
                except ToolException as error:
                    content, status = str(error), "error"
            messages.append(ToolMessage(content, name=call["name"], tool_call_id=call["id"], status=status))
    raise AssertionError(f"no answer to {question!r}")
