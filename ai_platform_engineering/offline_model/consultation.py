"""Consulting the knowledge base over the turns of a request: search, read what looks promising, answer from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ai_platform_engineering.offline_model import answers
from ai_platform_engineering.offline_model.answers import Part
from ai_platform_engineering.offline_model.citations import Bibliography, quoted
from ai_platform_engineering.offline_model.conversation import Exchange, Use
from ai_platform_engineering.offline_model.extracts import ENOUGH, extracts
from ai_platform_engineering.offline_model.findings import Place, Search, documents, searches, unread
from ai_platform_engineering.offline_model.inquiries import (
    Inquiry,
    defined_subject,
    inquiry,
    stripped,
)
from ai_platform_engineering.offline_model.knowledge import MAX_INQUIRIES
from ai_platform_engineering.offline_model.routing import fitting
from ai_platform_engineering.offline_model.tools import READ_TOOL, SEARCH_TOOL, Agent, Call

KNOWLEDGE_BASE = "Knowledge base"
_USED_UP = "The searches of the knowledge base for one question were used up before anything was found."
_MAX_DOCUMENTS = 3
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
    turns = [places[turn] for turn in range(_MAX_DOCUMENTS) for places in wanted if turn < len(places)]
    chosen = dict.fromkeys(place.document_id for place in turns)
    return tuple(Call(READ_TOOL, {"document_id": document}) for document in list(chosen)[:_MAX_DOCUMENTS])


def _worth_reading(search: Search) -> list[Place]:
    """The best place of each document that was found nearly as well as the first."""
    by_document: dict[str, Place] = {}
    for place in search.places:
        by_document.setdefault(place.document_id, place)
    best = max((place.score for place in search.places), default=0.0)
    return [place for place in by_document.values() if place.score >= best * _WORTH_READING]


def narration(calls: Sequence[Call], inquiries: Sequence[Inquiry], uses: Sequence[Use]) -> str:
    """What is said before the knowledge base is searched or read."""
    queries = {str(call.arguments["query"]) for call in calls if call.name == SEARCH_TOOL}
    if queries:
        topics = [inquiry.topic for inquiry in inquiries if inquiry.query in queries]
        return f"I'll search the knowledge base for {answers.enumeration(list(dict.fromkeys(topics)))}."
    wanted = [str(call.arguments["document_id"]) for call in calls if call.name == READ_TOOL]
    titles = _titles(uses)
    named = list(dict.fromkeys(f"“{titles.get(document, document)}”" for document in wanted))
    return f"I'll read {answers.enumeration(named)}." if named else ""


def parts(
    exchange: Exchange, inquiries: Sequence[Inquiry], agents: Sequence[Agent], bibliography: Bibliography
) -> list[Part]:
    """What came of every search, as parts of the answer; what they cite goes into the bibliography."""
    asked = {item.query: item.question for item in inquiries}
    made = _searches(exchange)
    if not made and any(use.name == SEARCH_TOOL and use.result is not None for use in exchange.uses):
        return [Part(KNOWLEDGE_BASE, exchange.question, _USED_UP)]
    return [
        Part(KNOWLEDGE_BASE, asked.get(search.query, search.query).rstrip(" ?.!"), text)
        for search in made
        if (text := _answer(search, asked, exchange.uses, tuple(agents), bibliography))
    ]


def has_answer(exchange: Exchange) -> bool:
    """Whether a passage that was found answers what was asked, and not only speaks of the same."""
    read = documents(exchange.uses)
    return any(
        extract.share >= ENOUGH
        for search in _searches(exchange)
        for extract in extracts(search.query, search.places, read)
    )


def _searches(exchange: Exchange) -> list[Search]:
    """What was searched for. Where that was much, or documents were read without a search, the question stands for it
    all: other models search in their own ways."""
    made = searches(exchange.uses)
    if len(made) > MAX_INQUIRIES or (not made and documents(exchange.uses)):
        return [Search(exchange.question, tuple(place for search in made for place in search.places))]
    return made


def unread_notes(uses: Sequence[Use]) -> list[str]:
    titles = _titles(uses)
    return [f"“{titles.get(document, document)}” could not be read: {reason}" for document, reason in unread(uses)]


def _titles(uses: Sequence[Use]) -> dict[str, str]:
    return {place.document_id: place.title for search in searches(uses) for place in search.places}


def _answer(
    search: Search, asked: Mapping[str, str], uses: Sequence[Use], agents: tuple[Agent, ...], bibliography: Bibliography
) -> str:
    if search.problem is not None:
        return f"The knowledge base could not be searched: {search.problem}"
    question = asked.get(search.query, search.query).rstrip(" ?.!")
    found = extracts(search.query, search.places, documents(uses))
    answering = [extract for extract in found if extract.share >= ENOUGH]
    if answering:
        told = quoted(answering, bibliography)
        if defined_subject(stripped(search.query)) and not any(extract.defines for extract in answering):
            return f"No passage that I found says {inquiry(search.query).topic}. These speak of it:\n\n{told}"
        return told
    if found:
        nearest = quoted(found[:1], bibliography)
        return f"No passage that I found clearly answers “{question}”. The nearest by its words:\n\n{nearest}"
    return f"I found nothing in the knowledge base about “{question}”.{_who_may_help(search.query, agents)}"


def _who_may_help(query: str, agents: tuple[Agent, ...]) -> str:
    """What can be done instead: ask the agents that have to do with it, or any."""
    able = [agent for agent in fitting(query, agents) if agent.no_tools is None] or list(agents)
    return f" What my agents can do:\n\n{answers.capabilities(able)}" if able else ""
