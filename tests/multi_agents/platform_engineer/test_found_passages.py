"""The list that stands for an answer: what searches and documents of the question have found, with sources."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ai_platform_engineering.knowledge_bases.rag.results import SearchResult, SearchResults
from ai_platform_engineering.knowledge_bases.rag.views import DocumentView
from ai_platform_engineering.multi_agents.platform_engineer.found_passages import found_text


def searched(*titles: str) -> str:
    results = [
        SearchResult(
            document_id=f"docs:{title}",
            title=title,
            section="Limits",
            datasource="docs",
            link=f"https://docs.example/{title}",
            score=0.5,
            snippet=f"What {title} says.",
        )
        for title in titles
    ]
    return SearchResults(query="limits", results=results).model_dump_json(exclude_none=True)


def question(*results: str) -> list[BaseMessage]:
    earlier = [HumanMessage("before"), ToolMessage(searched("earlier"), tool_call_id="a"), AIMessage("done")]
    return [*earlier, HumanMessage("limits?"), *(ToolMessage(text, tool_call_id="b") for text in results)]


def test_passages_of_the_question_are_listed_once_with_their_sources() -> None:
    document = DocumentView(
        document_id="docs:slim", title="SLIM", datasource="docs", link="https://docs.example/slim", text="A layer."
    )
    text = found_text(question(searched("one", "two"), searched("two"), document.page(), "Search already done."))
    assert text.splitlines() == [
        "The model wrote no answer of its own. This was found in the knowledge base:",
        "",
        "- **one, Limits**: What one says.",
        "  Source: https://docs.example/one",
        "- **two, Limits**: What two says.",
        "  Source: https://docs.example/two",
        "- **SLIM**: A layer.",
        "  Source: https://docs.example/slim",
    ]


def test_a_result_that_was_cut_gives_its_whole_passages() -> None:
    text = found_text(question(searched("one", "two")[:-40] + "... [truncated]"))
    assert "https://docs.example/one" in text
    assert "two" not in text


def test_long_lists_and_empty_ones_say_so() -> None:
    assert found_text(question("Search already done.")).endswith("Nothing was found in the knowledge base.")
    many = found_text(question(searched(*(f"page{number}" for number in range(13)))))
    assert many.endswith("3 more passages were found.")
