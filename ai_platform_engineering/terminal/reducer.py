"""The fold over a run: `reduce(view, item) -> view`. All text from the run is cleaned before it enters the view."""

from __future__ import annotations

from dataclasses import replace

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.terminal.view import (
    SETTLED,
    Call,
    CallFinished,
    CallStarted,
    CallState,
    Delegation,
    MessageText,
    PartialMessage,
    PlanChanged,
    PlanShown,
    RunEnded,
    TerminalNotice,
    ToolCall,
    TranscriptEntry,
    View,
    closing_steps,
)
from ai_platform_engineering.text.plain_text import one_line, split_finished
from ai_platform_engineering.utils.characters import clean

CUT_OFF = "The text above was cut off; it is written again."


def reduce(view: View, item: Event | TerminalNotice) -> View:
    match item:
        case TextDelta():
            after = _write(view, item)
        case MessageEnded():
            after = _end_message(view, item.message_id)
        case AgentStarted():
            after = _start(view, Delegation(one_line(item.agent), item.call_id))
        case AgentFinished():
            after = _end_delegation(view, item)
        case ToolStarted():
            after = _start_tool(view, item)
        case ToolFinished():
            after = _end_tool(view, item)
        case PlanUpdated():
            after = _update_plan(view, item)
        case TerminalNotice():
            after = _add(view, TerminalNotice(one_line(item.text)))
        case FinalResult() | Failed() | Canceled() | InputRequired():
            after = _end(view, item)
    return after


def resume_view(view: View) -> View:
    """The view for the next run: the same one if the run waited for input, else an empty one.

    Calls that were reported as waiting are not reported again at the next end.
    """
    if not isinstance(view.ending, InputRequired):
        return View()
    live = view.plan is not None and not _is_settled(view.plan)
    return replace(view, ending=None, calls=view.waiting, plan_is_live=live)


def _add(view: View, *entries: TranscriptEntry) -> View:
    return replace(view, transcript=view.transcript + entries)


def _write(view: View, delta: TextDelta) -> View:
    if delta.parent_call_id is not None:
        # An agent's text is input for the supervisor, which writes the answer.
        return view
    if delta.supersedes is not None and delta.supersedes in view.seen_message_ids:
        others = tuple(partial for partial in view.partial_messages if partial.message_id != delta.supersedes)
        view = _add(replace(view, partial_messages=others), TerminalNotice(CUT_OFF))
    partial = next((one for one in view.partial_messages if one.message_id == delta.message_id), None)
    if partial is None:
        view = _show_plan_before_answer(view)
        partial = PartialMessage(delta.message_id, "")
        view = replace(
            view,
            partial_messages=(*view.partial_messages, partial),
            seen_message_ids=view.seen_message_ids | {delta.message_id},
        )
    finished, rest = split_finished(partial.text + clean(delta.text))
    partial_messages = tuple(
        PartialMessage(one.message_id, rest) if one is partial else one for one in view.partial_messages
    )
    return _add_text(replace(view, partial_messages=partial_messages), delta.message_id, finished)


def _end_message(view: View, message_id: str) -> View:
    for partial in view.partial_messages:
        if partial.message_id == message_id:
            partial_messages = tuple(one for one in view.partial_messages if one is not partial)
            return _add_text(replace(view, partial_messages=partial_messages), message_id, partial.text)
    return view


def _add_text(view: View, message_id: str, text: str) -> View:
    # Only newlines are stripped: leading spaces have a meaning in Markdown.
    return _add(view, MessageText(message_id, text.strip("\n"))) if text.strip() else view


def _start(view: View, call: Call) -> View:
    live = view.plan_is_live or (view.plan is not None and not _is_settled(view.plan))
    return _add(replace(view, calls=(*view.calls, call), plan_is_live=live), CallStarted(call))


def _start_tool(view: View, event: ToolStarted) -> View:
    tool = ToolCall(one_line(event.agent), one_line(event.tool), event.call_id, skill=one_line(event.skill or ""))
    for call in view.calls:
        if isinstance(call, Delegation) and call.call_id == event.parent_call_id:
            calls = _replaced(view.calls, call, replace(call, tools=(*call.tools, tool)))
            return _add(replace(view, calls=calls), CallStarted(tool))
    return _start(view, tool)


def _end_tool(view: View, event: ToolFinished) -> View:
    state, reason = _outcome(event.ok, event.reason)
    for call in view.calls:
        match call:
            case ToolCall(call_id=event.call_id):
                ended = replace(call, state=state, reason=reason)
                return _add(replace(view, calls=_without(view.calls, call)), CallFinished(ended))
            case Delegation():
                for tool in call.tools:
                    if tool.call_id == event.call_id:
                        ended = replace(tool, state=state, reason=reason)
                        tools = tuple(ended if one is tool else one for one in call.tools)
                        calls = _replaced(view.calls, call, replace(call, tools=tools))
                        return _add(replace(view, calls=calls), CallFinished(ended, inner=True))
    return view


def _end_delegation(view: View, event: AgentFinished) -> View:
    state, reason = _outcome(event.ok, event.reason)
    for call in view.calls:
        if isinstance(call, Delegation) and call.call_id == event.call_id:
            # A tool call that is still running is shown on its own after its agent has ended.
            running = tuple(tool for tool in call.tools if tool.state == "running")
            tools = tuple(tool for tool in call.tools if tool.state != "running")
            ended = replace(call, state=state, reason=reason, tools=tools)
            return _add(replace(view, calls=(*_without(view.calls, call), *running)), CallFinished(ended))
    return view


def _outcome(ok: bool, reason: str | None) -> tuple[CallState, str]:
    return ("ok", "") if ok else ("failed", one_line(reason or ""))


def _replaced(calls: tuple[Call, ...], old: Call, new: Call) -> tuple[Call, ...]:
    return tuple(new if call is old else call for call in calls)


def _without(calls: tuple[Call, ...], ended: Call) -> tuple[Call, ...]:
    return tuple(call for call in calls if call is not ended)


def _update_plan(view: View, event: PlanUpdated) -> View:
    plan = _cleaned(event)
    known = {step.id: step for step in view.plan.steps} if view.plan else {}
    new = tuple(step for step in plan.steps if step.id not in known)
    changed = tuple(step for step in plan.steps if step.id in known and known[step.id].status != step.status)
    view = replace(view, plan=plan, plan_is_live=view.plan_is_live or bool(new))
    if new or changed:
        view = _add(view, PlanChanged(plan.title, new, changed))
    return _show_plan(view) if view.plan_is_live and _is_settled(plan) else view


def _cleaned(plan: PlanUpdated) -> PlanUpdated:
    steps = (
        replace(step, title=_without_agent_tag(step), agent=one_line(step.agent) if step.agent else None)
        for step in plan.steps
    )
    return PlanUpdated(tuple(sorted(steps, key=lambda step: step.order)), one_line(plan.title))


def _without_agent_tag(step: PlanStep) -> str:
    """The title without a leading `[agent]`, which some models write."""
    title = one_line(step.title)
    tag = f"[{step.agent}]"
    return title[len(tag) :].lstrip() if step.agent and title.lower().startswith(tag.lower()) else title


def _is_settled(plan: PlanUpdated) -> bool:
    return all(step.status in SETTLED for step in plan.steps)


def _show_plan(view: View) -> View:
    return _show_steps(view, view.plan.steps, live=False) if view.plan else view


def _show_steps(view: View, steps: tuple[PlanStep, ...], *, live: bool) -> View:
    """Print the `steps` that are new or changed since the last time; without the heading below an answer."""
    if view.plan is None:
        return view
    unseen = tuple(step for step in steps if step not in view.shown_steps)
    title = None if closing_steps(view) else view.plan.title
    view = replace(view, plan_is_live=live, shown_steps=steps)
    return _add(view, PlanShown(title, unseen)) if unseen else view


def _show_plan_before_answer(view: View) -> View:
    """Print the settled steps above the answer when all agent steps are settled.

    The remaining steps are the supervisor's own work on the answer; they are printed below it.
    """
    if not view.plan_is_live or view.plan is None or view.calls:
        return view
    settled = tuple(step for step in view.plan.steps if step.status in SETTLED)
    agents_are_done = all(step in settled for step in view.plan.steps if step.agent)
    return _show_steps(view, settled, live=settled != view.plan.steps) if settled and agents_are_done else view


def _end(view: View, ending: FinalResult | Failed | Canceled | InputRequired) -> View:
    for partial in view.partial_messages:
        view = _end_message(view, partial.message_id)
    if view.plan_is_live or not isinstance(ending, FinalResult):
        view = _show_plan(view)
    if isinstance(ending, FinalResult) and ending.answer_message_id not in view.seen_message_ids:
        view = _add_text(view, ending.answer_message_id, clean(ending.text))
    unreported = tuple(call for call in view.calls if call not in view.waiting)
    waiting = tuple(_still_open(call) for call in view.calls)
    return _add(replace(view, ending=ending, calls=(), waiting=waiting), RunEnded(ending, unreported))


def _still_open(call: Call) -> Call:
    """The call without its finished tool calls."""
    if isinstance(call, ToolCall):
        return call
    return replace(call, tools=tuple(tool for tool in call.tools if tool.state == "running"))
