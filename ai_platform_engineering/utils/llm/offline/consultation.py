"""Consulting the knowledge base over the turns of a request: search, read what looks promising, answer from it."""

from __future__ import annotations

from collections.abc import Sequence

from ai_platform_engineering.utils.llm.offline import answers
from ai_platform_engineering.utils.llm.offline.answers import Part
from ai_platform_engineering.utils.llm.offline.citations import Bibliography, quoted
from ai_platform_engineering.utils.llm.offline.conversation import Use
from ai_platform_engineering.utils.llm.offline.extracts import ENOUGH, extracts
from ai_platform_engineering.utils.llm.offline.findings import Place, Search, documents, searches
from ai_platform_engineering.utils.llm.offline.inquiries import Inquiry, content_words
from ai_platform_engineering.utils.llm.offline.relevance import question, roots_of
from ai_platform_engineering.utils.llm.offline.routing import fitting
from ai_platform_engineering.utils.llm.offline.tools import READ_TOOL, SEARCH_TOOL, Agent, Call

KNOWLEDGE_BASE = "Knowledge base"
_MOST_DOCUMENTS = 3
_WORTH_READING = 0.35
"""The share of the best score that a further document needs to be read too."""


def next_calls(inquiries: Sequence[Inquiry], uses: Sequence[Use]) -> tuple[Call, ...]:
    """What is to be looked up next: everything is searched for in one turn, then read in one turn."""
    made = {str(use.arguments.get("query", "")) for use in uses if use.name == SEARCH_TOOL}
    queries = dict.fromkeys(inquiry.query for inquiry in inquiries if inquiry.query not in made)
    if queries:
        return tuple(Call(SEARCH_TOOL, {"query": query}) for query in queries)
    if any(use.name == READ_TOOL for use in uses):
        return ()
    wanted = [_worth_reading(search) for search in searches(uses)]
    turns = [places[turn] for turn in range(_MOST_DOCUMENTS) for places in wanted if turn < len(places)]
    chosen = dict.fromkeys(place.document_id for place in turns)
    return tuple(Call(READ_TOOL, {"document_id": document}) for document in list(chosen)[:_MOST_DOCUMENTS])


def _worth_reading(search: Search) -> list[Place]:
    """The best place of each document that may have the answer."""
    by_document: dict[str, Place] = {}
    for place in search.places:
        by_document.setdefault(place.document_id, place)
    best = max((place.score for place in search.places), default=0.0)
    texts = [roots_of(f"{place.title} {place.section} {place.snippet}") for place in by_document.values()]
    asked = question(content_words(search.query), texts)
    return [
        place
        for place, roots in zip(by_document.values(), texts, strict=True)
        if place.score >= best * _WORTH_READING and asked.share(roots)
    ]


def narration(calls: Sequence[Call], inquiries: Sequence[Inquiry], uses: Sequence[Use]) -> str:
    """What is said before the knowledge base is searched or read."""
    queries = {str(call.arguments["query"]) for call in calls if call.name == SEARCH_TOOL}
    if queries:
        topics = [inquiry.topic for inquiry in inquiries if inquiry.query in queries]
        return f"I'll search the knowledge base for {answers.enumeration(list(dict.fromkeys(topics)))}."
    wanted = [str(call.arguments["document_id"]) for call in calls if call.name == READ_TOOL]
    titles = {place.document_id: place.title for search in searches(uses) for place in search.places}
    named = list(dict.fromkeys(f"“{titles.get(document, document)}”" for document in wanted))
    return f"I'll read {answers.enumeration(named)}." if named else ""


def parts(uses: Sequence[Use], agents: Sequence[Agent], bibliography: Bibliography) -> list[Part]:
    """What came of every search, as parts of the answer; what they cite goes into the bibliography."""
    return [
        Part(KNOWLEDGE_BASE, search.query, _answer(search, uses, tuple(agents), bibliography))
        for search in searches(uses)
    ]


def _answer(search: Search, uses: Sequence[Use], agents: tuple[Agent, ...], bibliography: Bibliography) -> str:
    if search.problem is not None:
        return f"The knowledge base could not be searched: {search.problem}"
    found = extracts(search.query, search.places, documents(uses))
    answering = [extract for extract in found if extract.share >= ENOUGH]
    if answering:
        return quoted(answering, bibliography)
    if found:
        nearest = quoted(found[:1], bibliography)
        return f"No passage that I found clearly answers “{search.query}”. The nearest by its words:\n\n{nearest}"
    missing = f"I found nothing about “{search.query}” in the knowledge base."
    return f"{missing}{_who_may_help(search.query, agents)}"


def _who_may_help(query: str, agents: tuple[Agent, ...]) -> str:
    able = [agent for agent in fitting(query, agents) if agent.no_tools is None]
    if not agents:
        return ""
    if able:
        return (
            f" {answers.enumeration([agent.title for agent in able])} may know more: ask what is there, not how or why."
        )
    return f" What I can do beside:\n\n{answers.capabilities(agents)}"
