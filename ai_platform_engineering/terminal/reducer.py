"""The fold: a view and the next event give the next view. Nothing a run sends gets into a view uncleaned."""

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
    CallState,
    Delegation,
    Ended,
    Fact,
    Finished,
    Notice,
    Planned,
    PlanShown,
    Speech,
    Spoke,
    Started,
    Tool,
    View,
    closing_steps,
)
from ai_platform_engineering.text.plain_text import clean, one_line, split_finished

CUT_OFF = "The text above was cut off; it is written again."


def reduce(view: View, item: Event | Notice) -> View:
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
        case Notice():
            after = _add(view, Notice(one_line(item.text)))
        case FinalResult() | Failed() | Canceled() | InputRequired():
            after = _end(view, item)
    return after


def go_on(view: View) -> View:
    """The view of a run that has got an answer; a new one where it did not ask for any.

    What was told when it stopped is not told again when it ends.
    """
    if not isinstance(view.ending, InputRequired):
        return View()
    live = view.plan is not None and not _is_settled(view.plan)
    return replace(view, ending=None, calls=view.waiting, plan_is_live=live)


def _add(view: View, *facts: Fact) -> View:
    return replace(view, facts=view.facts + facts)


def _write(view: View, delta: TextDelta) -> View:
    if delta.parent_call_id is not None:
        # What an agent writes is for the supervisor, who answers from it.
        return view
    if delta.supersedes is not None and delta.supersedes in view.spoken:
        kept = tuple(speech for speech in view.speeches if speech.message_id != delta.supersedes)
        view = _add(replace(view, speeches=kept), Notice(CUT_OFF))
    speech = next((one for one in view.speeches if one.message_id == delta.message_id), None)
    if speech is None:
        view = _show_plan_before_answer(view)
        speech = Speech(delta.message_id, "")
        view = replace(view, speeches=(*view.speeches, speech), spoken=view.spoken | {delta.message_id})
    finished, rest = split_finished(speech.text + clean(delta.text))
    speeches = tuple(Speech(one.message_id, rest) if one is speech else one for one in view.speeches)
    return _say(replace(view, speeches=speeches), delta.message_id, finished)


def _end_message(view: View, message_id: str) -> View:
    for speech in view.speeches:
        if speech.message_id == message_id:
            speeches = tuple(one for one in view.speeches if one is not speech)
            return _say(replace(view, speeches=speeches), message_id, speech.text)
    return view


def _say(view: View, message_id: str, text: str) -> View:
    # Only line ends are taken away: spaces at the beginning of a line mean something in Markdown.
    return _add(view, Spoke(message_id, text.strip("\n"))) if text.strip() else view


def _start(view: View, call: Call) -> View:
    live = view.plan_is_live or (view.plan is not None and not _is_settled(view.plan))
    return _add(replace(view, calls=(*view.calls, call), plan_is_live=live), Started(call))


def _start_tool(view: View, event: ToolStarted) -> View:
    tool = Tool(one_line(event.agent), one_line(event.tool), event.call_id, skill=one_line(event.skill or ""))
    for call in view.calls:
        if isinstance(call, Delegation) and call.call_id == event.parent_call_id:
            calls = _replaced(view.calls, call, replace(call, tools=(*call.tools, tool)))
            return _add(replace(view, calls=calls), Started(tool))
    return _start(view, tool)


def _end_tool(view: View, event: ToolFinished) -> View:
    state, reason = _outcome(event.ok, event.reason)
    for call in view.calls:
        match call:
            case Tool(call_id=event.call_id):
                ended = replace(call, state=state, reason=reason)
                return _add(replace(view, calls=_without(view.calls, call)), Finished(ended))
            case Delegation():
                for tool in call.tools:
                    if tool.call_id == event.call_id:
                        ended = replace(tool, state=state, reason=reason)
                        tools = tuple(ended if one is tool else one for one in call.tools)
                        calls = _replaced(view.calls, call, replace(call, tools=tools))
                        return _add(replace(view, calls=calls), Finished(ended, inner=True))
    return view


def _end_delegation(view: View, event: AgentFinished) -> View:
    state, reason = _outcome(event.ok, event.reason)
    for call in view.calls:
        if isinstance(call, Delegation) and call.call_id == event.call_id:
            # A tool that outlives its agent goes on beside it.
            running = tuple(tool for tool in call.tools if tool.state == "running")
            tools = tuple(tool for tool in call.tools if tool.state != "running")
            ended = replace(call, state=state, reason=reason, tools=tools)
            return _add(replace(view, calls=(*_without(view.calls, call), *running)), Finished(ended))
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
        view = _add(view, Planned(plan.title, new, changed))
    return _show_plan(view) if view.plan_is_live and _is_settled(plan) else view


def _cleaned(plan: PlanUpdated) -> PlanUpdated:
    steps = (
        replace(step, title=_untagged(step), agent=one_line(step.agent) if step.agent else None) for step in plan.steps
    )
    return PlanUpdated(tuple(sorted(steps, key=lambda step: step.order)), one_line(plan.title))


def _untagged(step: PlanStep) -> str:
    """The title without the name of the agent in brackets, which models like to put before it."""
    title = one_line(step.title)
    tag = f"[{step.agent}]"
    return title[len(tag) :].lstrip() if step.agent and title.lower().startswith(tag.lower()) else title


def _is_settled(plan: PlanUpdated) -> bool:
    return all(step.status in SETTLED for step in plan.steps)


def _show_plan(view: View) -> View:
    return _show_steps(view, view.plan.steps, live=False) if view.plan else view


def _show_steps(view: View, steps: tuple[PlanStep, ...], *, live: bool) -> View:
    """The plan with those of `steps` that were not shown like this before; without its heading below an answer."""
    if view.plan is None:
        return view
    unseen = tuple(step for step in steps if step not in view.shown_steps)
    title = None if closing_steps(view) else view.plan.title
    view = replace(view, plan_is_live=live, shown_steps=steps)
    return _add(view, PlanShown(title, unseen)) if unseen else view


def _show_plan_before_answer(view: View) -> View:
    """When all agents are done and text follows, what they did is shown first: below the answer nobody reads it.

    The steps that are left are what the text does; they follow when it is done.
    """
    if not view.plan_is_live or view.plan is None or view.calls:
        return view
    settled = tuple(step for step in view.plan.steps if step.status in SETTLED)
    agents_are_done = all(step in settled for step in view.plan.steps if step.agent)
    return _show_steps(view, settled, live=settled != view.plan.steps) if settled and agents_are_done else view


def _end(view: View, ending: FinalResult | Failed | Canceled | InputRequired) -> View:
    for speech in view.speeches:
        view = _end_message(view, speech.message_id)
    if view.plan_is_live or not isinstance(ending, FinalResult):
        view = _show_plan(view)
    if isinstance(ending, FinalResult) and ending.answer_message_id not in view.spoken:
        view = _say(view, ending.answer_message_id, clean(ending.text))
    unheard = tuple(call for call in view.calls if call not in view.waiting)
    waiting = tuple(_still_open(call) for call in view.calls)
    return _add(replace(view, ending=ending, calls=(), waiting=waiting), Ended(ending, unheard))


def _still_open(call: Call) -> Call:
    """The call without those of its tools that have ended."""
    if isinstance(call, Tool):
        return call
    return replace(call, tools=tuple(tool for tool in call.tools if tool.state == "running"))
