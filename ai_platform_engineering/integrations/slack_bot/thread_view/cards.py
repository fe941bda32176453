"""The plan and the agents as cards: a card for every step, and one for each agent or tool outside the plan.

A card's details only grow, because Slack appends the details that a stream sends; status and title are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    PlanStep,
    PlanUpdated,
    StepStatus,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.integrations.slack_bot.markdown.mentions import disarm_mentions
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card, CardStatus
from ai_platform_engineering.integrations.slack_bot.words import plain
from ai_platform_engineering.utils.a2a_common.codec.labels import display, one_line

KNOWLEDGE_TOOLS: Final = frozenset({"search", "fetch_document", "list_datasources", "fetch_url"})
"""Tools that read the knowledge base; they share one card."""

_CARD_STATUS: Final[Mapping[StepStatus, CardStatus]] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "complete",
    "failed": "error",
}
_MAX_TITLE_LENGTH: Final = 200
_MAX_REASON_LENGTH: Final = 120
_MAX_DETAILS_LENGTH: Final = 250
_SEPARATOR: Final = " · "
_MORE: Final = " …"
_NOT_PLANNED: Final = "No longer planned: "
_WAITING: Final = "Waiting for an answer: "
_KNOWLEDGE_CARD: Final = "own:knowledge"


@dataclass(frozen=True, slots=True)
class CardCall:
    """A running call and the card that shows it."""

    call_id: str
    card_id: str


@dataclass(frozen=True, slots=True)
class Cards:
    plan: str = ""
    steps: tuple[Card, ...] = ()
    others: tuple[Card, ...] = ()
    calls: tuple[CardCall, ...] = ()
    active: frozenset[str] = field(default_factory=frozenset)
    """Ids of the steps in progress."""
    waiting: bool = False
    """The run waits for a person, so no card is shown as in progress."""

    @property
    def all(self) -> tuple[Card, ...]:
        """The cards as shown to people."""
        every = (*self.steps, *self.others)
        return tuple(map(_waiting, every)) if self.waiting else every


def planned(cards: Cards, event: PlanUpdated) -> Cards:
    known = {card.id: card for card in cards.steps}
    steps = [_step_card(step, known) for step in sorted(event.steps, key=lambda step: step.order)]
    current = {card.id for card in steps}
    dropped = [_dropped(card) for card in cards.steps if card.id not in current]
    active = frozenset(step_id(step.id) for step in event.steps if step.status == "in_progress")
    return replace(cards, plan=_line(event.title, _MAX_TITLE_LENGTH), steps=(*steps, *dropped), active=active)


def started(cards: Cards, event: AgentStarted | ToolStarted) -> Cards:
    host = _host(cards, event.parent_call_id, event.plan_step_id)
    match event:
        case AgentStarted(agent=agent):
            card_id, title = f"agent:{event.call_id}", f"Agent {display(agent)}"
            detail = f"Calling Agent {display(agent)}..."
        case ToolStarted(agent=agent, tool=tool) if agent == SUPERVISOR and tool in KNOWLEDGE_TOOLS:
            card_id, title, detail = _KNOWLEDGE_CARD, "Knowledge base", tool
        case ToolStarted(agent=agent, skill=str(skill)):
            card_id, title = f"own:{agent}:skill:{skill}", f"{_tag(agent)}Skill {skill}"
            detail = _tool_and_skill(event) if host else ""
        case ToolStarted(agent=agent, tool=tool):
            # A card of its own names the tool in its title, so it needs no detail.
            card_id, title, detail = f"own:{agent}:{tool}", _tag(agent) + _readable(tool), tool if host else ""
    card_id = host or card_id
    cards = _with_detail(
        _with_card(cards, Card(card_id, _line(title, _MAX_TITLE_LENGTH), "in_progress")),
        card_id,
        _line(detail, _MAX_TITLE_LENGTH),
    )
    return replace(cards, calls=(*cards.calls, CardCall(event.call_id, card_id)))


def finished(cards: Cards, event: AgentFinished | ToolFinished) -> Cards:
    call = next((call for call in cards.calls if call.call_id == event.call_id), None)
    if call is None:
        return cards
    cards = replace(cards, calls=tuple(one for one in cards.calls if one is not call))
    what = (
        display(event.agent) if isinstance(event, AgentFinished) else _line(_tool_and_skill(event), _MAX_TITLE_LENGTH)
    )
    if not event.ok:
        reason = _line(plain(event.reason or ""), _MAX_REASON_LENGTH)
        cards = _with_detail(cards, call.card_id, f"{what} failed" + (f": {reason}" if reason else ""))
    if any(one.card_id == call.card_id for one in cards.calls) or not _is_other(cards, call.card_id):
        return cards
    ended: CardStatus = "complete" if event.ok else "error"
    return _with_change(cards, call.card_id, lambda card: replace(card, status=ended))


def ended(cards: Cards) -> Cards:
    """The cards after the run has ended: none is in progress."""
    return replace(cards, steps=_not_in_progress(cards.steps), others=_not_in_progress(cards.others), waiting=False)


def _not_in_progress(cards: Iterable[Card]) -> tuple[Card, ...]:
    return tuple(replace(card, status="pending") if card.status == "in_progress" else card for card in cards)


def _waiting(card: Card) -> Card:
    """Slack has no status for waiting, so the title says it."""
    return replace(card, title=_WAITING + card.title, status="pending") if card.status == "in_progress" else card


def _step_card(step: PlanStep, known: Mapping[str, Card]) -> Card:
    card_id = step_id(step.id)
    details = known[card_id].details if card_id in known else ""
    return Card(card_id, step_title(step), _CARD_STATUS[step.status], details)


def step_title(step: PlanStep) -> str:
    """The title after the agent's name in brackets, which is not repeated if the model already wrote it."""
    title = _line(step.title, _MAX_TITLE_LENGTH)
    tag = f"[{display(step.agent)}]" if step.agent else ""
    return f"{tag} {title}" if tag and not title.lower().startswith(tag.lower()) else title


def _line(text: str, max_length: int) -> str:
    """Text of a model or a tool on one line, with mentions silenced."""
    return one_line(disarm_mentions(text), max_length)


def _tag(agent: str) -> str:
    return "" if agent == SUPERVISOR else f"[{display(agent)}] "


def _tool_and_skill(event: ToolStarted | ToolFinished) -> str:
    """The tool's name, followed by the skill if it reads one."""
    return f"{event.tool} {event.skill}" if event.skill else event.tool


def _readable(tool: str) -> str:
    return tool.replace("_", " ").replace("-", " ").strip().capitalize()


def _dropped(card: Card) -> Card:
    if card.status not in {"pending", "in_progress"} or card.title.startswith(_NOT_PLANNED):
        return card
    return replace(card, title=_NOT_PLANNED + card.title, status="pending")


def step_id(step_id: str) -> str:
    return f"step:{step_id}"


def _host(cards: Cards, parent_call_id: str | None, plan_step_id: str | None) -> str | None:
    """The existing card that shows a call, if any: the card of the calling agent, or of the plan step."""
    for call in cards.calls:
        if call.call_id == parent_call_id:
            return call.card_id
    step = step_id(plan_step_id) if plan_step_id is not None else None
    return step if any(card.id == step for card in cards.steps) else None


def _with_card(cards: Cards, card: Card) -> Cards:
    if _is_other(cards, card.id):
        return _with_change(cards, card.id, lambda known: replace(known, status=card.status))
    if any(one.id == card.id for one in cards.steps):
        return cards
    return replace(cards, others=(*cards.others, card))


def _is_other(cards: Cards, card_id: str) -> bool:
    return any(card.id == card_id for card in cards.others)


def _with_detail(cards: Cards, card_id: str, detail: str) -> Cards:
    return _with_change(cards, card_id, lambda card: replace(card, details=_extended(card.details, detail)))


def _extended(details: str, more: str) -> str:
    if details.endswith(_MORE):
        return details
    longer = f"{details}{_SEPARATOR}{more}" if details else more
    return longer if len(longer) <= _MAX_DETAILS_LENGTH else details + _MORE


def _with_change(cards: Cards, card_id: str, change: Callable[[Card], Card]) -> Cards:
    steps = tuple(change(card) if card.id == card_id else card for card in cards.steps)
    others = tuple(change(card) if card.id == card_id else card for card in cards.others)
    return replace(cards, steps=steps, others=others)
