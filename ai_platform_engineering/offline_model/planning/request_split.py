"""Split a request into questions for the knowledge base and the rest, for agents.

A part is `sure` to be such a question by its wording. Any other question is `perhaps` one: it goes to the knowledge
base only if no agent serves it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.requests import RequestText, is_common, name_tokens, request_names
from ai_platform_engineering.offline_model.english.sentences import clauses, requested_changes
from ai_platform_engineering.offline_model.english.vocabulary import QUESTION_WORDS, word_set
from ai_platform_engineering.offline_model.messages.tools import KNOWLEDGE_TOOLS, Agent, BoundTool
from ai_platform_engineering.offline_model.planning.inquiries import (
    HOW_TO,
    IDENTIFIER,
    WHAT_FOR,
    WHAT_IT_DOES,
    Inquiry,
    content_words,
    defined_subject,
    documents_mentioned,
    inquiry,
    mentions_documents,
    only_mentions_documents,
    without_politeness,
)
from ai_platform_engineering.offline_model.planning.references import (
    PreviousExchange,
    asks_for_more,
    has_pronoun,
    refers_back,
    resolve,
)
from ai_platform_engineering.offline_model.planning.routing import named_agents, vocabulary

MAX_INQUIRIES = 3
_MAX_CLAUSES = 16

Strength = Literal["sure", "perhaps"]

_SETTINGS = re.compile(
    r"^(?:which|what)\s+(?:\w+\s+)?(?:settings?|variables?|options?|flags?|parameters?|commands?|exit\s+codes?|defaults?)\b"
    r"|^what\s+(?:is|are)\s+(?:the\s+)?(?:[\w'’-]+\s+)?(?:settings?|variables?|flags?|commands?|exit\s+codes?|defaults?)\b",
    re.I,
)
_INDEFINITE_QUESTION = re.compile(
    r"^(?:why|when|where|how(?:\s+\w+)?|what)\s+(?:is|does|can|will|would|has|must|should)\s+an?\s", re.I
)
_PROCESS = re.compile(
    r"^(?:where|how|when)\s+(?:is|are)\s+(?!the\b|my\b|our\b|your\b|this\b|that\b|these\b|those\b|all\b)"
    r"[\w\s-]+?\s(?:\w+ed|kept|written|made|run|found|sent|set|built|shown|chosen|told|held|lost|read|drawn|given)\W*$",
    re.I,
)
_DATASOURCES = re.compile(r"\b(?:list|show|which|what\s+are)\b[^.?!\n]{0,60}\bdata\s*sources\b", re.I)
_ASKS = re.compile(
    r"^(?:what['’]s|who['’]s|where['’]s|explain|describe|define|summari[sz]e|about|search\s+for|find|look\s+up|lookup)\b"
    r"|^(?:on|in|at|for|from|with|to|by|under)\s+(?:which|what|whom)\b",
    re.I,
)
_REQUEST = re.compile(r"^\W*(?:\w+\W+){0,2}(?:can|could|would|will)\s+(?:you|we|i)\b", re.I)
"""A request in the form of a question."""
_ADDRESSED = re.compile(r"^\w+\s+(?:me|us)\b|^please\b", re.I)
_OPEN_QUESTIONS = word_set("what how why where which when")


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """A request, split into questions for the knowledge base and the text that is left for agents."""

    inquiries: tuple[Inquiry, ...] = ()
    rest: str = ""
    comes_first: bool = True
    """Whether the request begins with a question for the knowledge base, so that its answer comes first."""


def has_knowledge_base(tools: Iterable[BoundTool]) -> bool:
    return {tool.name for tool in tools} >= KNOWLEDGE_TOOLS


def asks_for_datasources(text: str) -> bool:
    return bool(_DATASOURCES.search(text))


def split_request(text: str, agents: tuple[Agent, ...], is_served: Callable[[str], bool]) -> SplitRequest:
    """Split the request. `is_served` says whether an agent serves a part."""
    parts = _parts(text)
    asked: list[str] = []
    rest: list[str] = []
    comes_first = True
    for position, part in enumerate(parts):
        strength = _strength(part, agents)
        context = parts[position - 1] if position and has_pronoun(part) else ""
        if strength == "perhaps" and (context or is_served(part) or (len(parts) > 1 and not _is_open_question(part))):
            strength = None
        if strength is None or len(asked) == MAX_INQUIRIES:
            rest.append(part)
            comes_first = comes_first and bool(asked)
        else:
            asked.append(f"{part.rstrip(' ?.!')} ({context.rstrip(' ?.!')})" if context else part)
    if not asked:
        return SplitRequest(rest=text)
    return SplitRequest(tuple(map(inquiry, asked)), ". ".join(part.rstrip(" .;,") for part in rest), comes_first)


def _parts(text: str) -> list[str]:
    """The clauses of a request. The rest of the sentence belongs to a how-to question: "how do I stop it and delete its
    files?" does not request a deletion."""
    parts: list[str] = []
    end = 0
    for clause in clauses(text)[:_MAX_CLAUSES]:
        start = text.find(clause, end)
        between = text[end:start]
        is_same_sentence = not re.search(r"[.?!;\n]", f"{text[max(0, end - 1) : end]}{between}")
        if (
            parts
            and is_same_sentence
            and (_continues_question(clause, parts[-1]) or only_mentions_documents(parts[-1]))
        ):
            parts[-1] = f"{parts[-1]}{between}{clause}"
        else:
            parts.append(clause)
        end = start + len(clause)
    return parts


def _continues_question(clause: str, before: str) -> bool:
    spoken = lexical.words(clause)
    asks_for_itself = bool(spoken) and (spoken[0] in QUESTION_WORDS or bool(_ADDRESSED.match(clause)))
    return not asks_for_itself and _strength(before, ()) == "sure"


def follow_up(text: str, before: str, agents: tuple[Agent, ...]) -> str:
    """A follow-up to an earlier question for the knowledge base, as a self-contained question."""
    if not refers_back(text):
        return text
    if asks_for_more(text):
        return before
    return resolve(text, PreviousExchange(before, "", _names(before, agents)))


def _names(question: str, agents: tuple[Agent, ...]) -> tuple[str, ...]:
    """The names in a question, the most likely first: settings, the defined subject, agents, other things."""
    subject = defined_subject(without_politeness(question))
    named = [token for token in name_tokens(question) if named_agents(token, agents)]
    others = request_names(RequestText(question, vocabulary(agents)))
    return tuple(dict.fromkeys([*IDENTIFIER.findall(question), *([subject] if subject else []), *named, *others]))


@lru_cache(maxsize=512)
def _strength(clause: str, agents: tuple[Agent, ...]) -> Strength | None:
    text = without_politeness(clause)
    asks_to_change = requested_changes(clause) and not _OPEN_QUESTIONS.intersection(lexical.words(text)[:1])
    if asks_to_change or not content_words(text):
        return None
    if mentions_documents(text):
        return None if _agent_manages_documents(text, agents) else "sure"
    is_question = _is_question(clause)
    if is_question and IDENTIFIER.search(text):
        return "sure"
    if any(pattern.match(text) for pattern in (HOW_TO, _SETTINGS, WHAT_FOR, _PROCESS, _INDEFINITE_QUESTION)):
        return "sure"
    if (WHAT_IT_DOES.match(text) or defined_subject(text)) and not _names_a_thing(text, agents):
        return "sure"
    return "perhaps" if is_question else None


def _agent_manages_documents(text: str, agents: Sequence[Agent]) -> bool:
    """Whether the text names an agent that manages such documents itself, for example a wiki."""
    spoken = documents_mentioned(text)
    return any(
        spoken & (lexical.description_terms(agent.description) | {lexical.stem(word) for word in agent.keywords})
        for agent in named_agents(text, agents)
    )


def _is_question(clause: str) -> bool:
    text = without_politeness(clause)
    if QUESTION_WORDS.intersection(lexical.words(text)[:1]) or _ASKS.match(text):
        return True
    return clause.rstrip().endswith("?") and not _REQUEST.match(clause)


def _is_open_question(clause: str) -> bool:
    """Whether a clause is no yes-or-no question: people add those to a request to specify it."""
    text = without_politeness(clause)
    return bool(_ASKS.match(text)) or bool(_OPEN_QUESTIONS.intersection(lexical.words(text)[:1]))


def _names_a_thing(text: str, agents: tuple[Agent, ...]) -> bool:
    """Whether the text contains a compound name of a thing, with digits or punctuation."""
    known = vocabulary(agents)
    tokens = name_tokens(IDENTIFIER.sub(" ", text))
    return any(re.search(r"[\d\-./#]", token) and not is_common(token, known) for token in tokens)
