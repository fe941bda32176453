"""Use the knowledge base over the turns of a request: search, read the best documents, answer with quotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ai_platform_engineering.offline_model import answers
from ai_platform_engineering.offline_model.answers import AnswerPart
from ai_platform_engineering.offline_model.knowledge.citations import Bibliography, quoted
from ai_platform_engineering.offline_model.knowledge.extracts import MIN_ANSWER_SHARE, extracts
from ai_platform_engineering.offline_model.knowledge.search_results import (
    KnowledgeSearch,
    SearchHit,
    documents,
    searches,
    unread,
)
from ai_platform_engineering.offline_model.messages.conversation import Exchange, ToolUse
from ai_platform_engineering.offline_model.messages.tools import READ_TOOL, SEARCH_TOOL, Agent, PlannedCall
from ai_platform_engineering.offline_model.planning.inquiries import (
    Inquiry,
    defined_subject,
    inquiry,
    without_politeness,
)
from ai_platform_engineering.offline_model.planning.request_split import MAX_INQUIRIES
from ai_platform_engineering.offline_model.planning.routing import fitting
from ai_platform_engineering.offline_model.results.rendering import enumeration

KNOWLEDGE_BASE = "Knowledge base"
_SEARCH_LIMIT_REACHED = "The searches of the knowledge base for one question were used up before anything was found."
_MAX_DOCUMENTS = 3
_MIN_SCORE_RATIO = 0.35
"""The minimum ratio to the best score for a further document to be read."""


def next_calls(inquiries: Sequence[Inquiry], uses: Sequence[ToolUse]) -> tuple[PlannedCall, ...]:
    """The next calls: all searches in one turn, then all documents in one turn."""
    searched = {str(use.arguments.get("query", "")) for use in uses if use.name == SEARCH_TOOL}
    queries = dict.fromkeys(inquiry.query for inquiry in inquiries if inquiry.query not in searched)
    if queries:
        return tuple(PlannedCall(SEARCH_TOOL, {"query": query}) for query in queries)
    if any(use.name == READ_TOOL for use in uses):
        return ()
    wanted = [_hits_to_read(search) for search in searches(uses)]
    turns = [hits[turn] for turn in range(_MAX_DOCUMENTS) for hits in wanted if turn < len(hits)]
    chosen = dict.fromkeys(hit.document_id for hit in turns)
    return tuple(PlannedCall(READ_TOOL, {"document_id": document}) for document in list(chosen)[:_MAX_DOCUMENTS])


def _hits_to_read(search: KnowledgeSearch) -> list[SearchHit]:
    """The best hit of each document that scores nearly as high as the first."""
    by_document: dict[str, SearchHit] = {}
    for hit in search.hits:
        by_document.setdefault(hit.document_id, hit)
    best = max((hit.score for hit in search.hits), default=0.0)
    return [hit for hit in by_document.values() if hit.score >= best * _MIN_SCORE_RATIO]


def narration(calls: Sequence[PlannedCall], inquiries: Sequence[Inquiry], uses: Sequence[ToolUse]) -> str:
    """The narration before the knowledge base is searched or read."""
    queries = {str(call.arguments["query"]) for call in calls if call.name == SEARCH_TOOL}
    if queries:
        topics = [inquiry.topic for inquiry in inquiries if inquiry.query in queries]
        return f"I'll search the knowledge base for {enumeration(list(dict.fromkeys(topics)))}."
    wanted = [str(call.arguments["document_id"]) for call in calls if call.name == READ_TOOL]
    titles = _titles(uses)
    named = list(dict.fromkeys(f"“{titles.get(document, document)}”" for document in wanted))
    return f"I'll read {enumeration(named)}." if named else ""


def parts(
    exchange: Exchange, inquiries: Sequence[Inquiry], agents: Sequence[Agent], bibliography: Bibliography
) -> list[AnswerPart]:
    """The results of all searches as parts of the answer. Their sources are added to the bibliography."""
    asked = {item.query: item.question for item in inquiries}
    searched = _searches(exchange)
    if not searched and any(use.name == SEARCH_TOOL and use.result is not None for use in exchange.uses):
        return [AnswerPart(KNOWLEDGE_BASE, exchange.question, _SEARCH_LIMIT_REACHED)]
    return [
        AnswerPart(KNOWLEDGE_BASE, asked.get(search.query, search.query).rstrip(" ?.!"), text)
        for search in searched
        if (text := _answer(search, asked, exchange.uses, tuple(agents), bibliography))
    ]


def has_answer(exchange: Exchange) -> bool:
    """Whether a passage answers the question, and does not only mention its subject."""
    read = documents(exchange.uses)
    return any(
        extract.share >= MIN_ANSWER_SHARE
        for search in _searches(exchange)
        for extract in extracts(search.query, search.hits, read)
    )


def _searches(exchange: Exchange) -> list[KnowledgeSearch]:
    """The searches of an exchange. If there are too many, or documents were read without a search, they count as one
    search for the question: another model may have made the calls."""
    searched = searches(exchange.uses)
    if len(searched) > MAX_INQUIRIES or (not searched and documents(exchange.uses)):
        return [KnowledgeSearch(exchange.question, tuple(hit for search in searched for hit in search.hits))]
    return searched


def unread_notes(uses: Sequence[ToolUse]) -> list[str]:
    titles = _titles(uses)
    return [f"“{titles.get(document, document)}” could not be read: {reason}" for document, reason in unread(uses)]


def _titles(uses: Sequence[ToolUse]) -> dict[str, str]:
    return {hit.document_id: hit.title for search in searches(uses) for hit in search.hits}


def _answer(
    search: KnowledgeSearch,
    asked: Mapping[str, str],
    uses: Sequence[ToolUse],
    agents: tuple[Agent, ...],
    bibliography: Bibliography,
) -> str:
    if search.problem is not None:
        return f"The knowledge base could not be searched: {search.problem}"
    question = asked.get(search.query, search.query).rstrip(" ?.!")
    found = extracts(search.query, search.hits, documents(uses))
    answering = [extract for extract in found if extract.share >= MIN_ANSWER_SHARE]
    if answering:
        quotations = quoted(answering, bibliography)
        if defined_subject(without_politeness(search.query)) and not any(extract.defines for extract in answering):
            return f"No passage that I found says {inquiry(search.query).topic}. These mention it:\n\n{quotations}"
        return quotations
    if found:
        nearest = quoted(found[:1], bibliography)
        return f"No passage that I found clearly answers “{question}”. The closest match by words:\n\n{nearest}"
    return f"I found nothing in the knowledge base about “{question}”.{_agents_hint(search.query, agents)}"


def _agents_hint(query: str, agents: tuple[Agent, ...]) -> str:
    """A hint at the agents that fit the query, or at all agents if none fits."""
    candidates = [agent for agent in fitting(query, agents) if agent.no_tools is None] or list(agents)
    return f" What my agents can do:\n\n{answers.capabilities(candidates)}" if candidates else ""
