from __future__ import annotations

from functools import reduce as fold

import pytest
from hypothesis import given, settings

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.forms.filling import InvalidForm, fill
from ai_platform_engineering.terminal.reducer import reduce, resume_view
from ai_platform_engineering.terminal.rendering import ASCII, UNICODE, symbols_for
from ai_platform_engineering.terminal.screen import rows
from ai_platform_engineering.terminal.view import View
from ai_platform_engineering.utils.a2a_common.codec.labels import display
from ai_platform_engineering.utils.characters import clean
from tests import strategies
from tests.terminal.asking import DELETE, KEY, REPO
from tests.terminal.runs import ANSWER, BEGINNING, RUN, answers, live, plan, printed, progress, said, view_of, views_of

MARKER = "Quintessence"


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("Restart <deployment> in <namespace>.", ["Restart <deployment> in <namespace>."]),
        (
            "<deployment>\nname: **x**\n</deployment>\n\nDone.",
            ["<deployment>", "name: **x**", "</deployment>", "", "Done."],
        ),
        ("<script>alert(1)</script>", ["<script>alert(1)</script>"]),
        ("See <https://x.test|click>.", ["See https://x.test|click (https://x.test%7Cclick)."]),
        ("&lt;pod&gt; and `<pod>`", ["<pod> and <pod>"]),
        ("one<br>two <!-- note --> three", ["one", "two  three"]),
        ("| a |\n| --- |\n| <x> |", ["a", "───", "<x>"]),
        ("in&#x202e;voice &#27;[2J &#x200b;", ["invoice �[2J"]),
        (
            "\x1b]8;;https://evil.test\x07bank\x1b]8;;\x07 \x1b]52;c;eA==\x07",
            ["]8;;https://evil.testbank]8;; ]52;c;eA=="],
        ),
    ],
)
def test_markup_in_an_answer_is_shown_and_acts_on_nothing(answer: str, shown: list[str]) -> None:
    events = [*said("m1", answer), FinalResult(answer, "m1")]
    assert [line.strip() for line in printed(view_of(events)) if line.strip() or "" in shown] == shown


def test_a_whole_run_as_it_stays_on_the_screen() -> None:
    assert printed(view_of(RUN)) == [
        "I'll ask Jira.",
        "",
        "✓ Agent Jira",
        "    ✓ search_issues",
        "    ✗ get_issue failed: no such issue",
        "",
        "Plan: Compare issues",
        "  ✓ Jira: Show Jira issues",
        "",
        "Jira has two issues.",
        "",
        " • SHOP-1",
        " • SHOP-2",
        "",
        "  ✓ Compare the results",
    ]


def test_a_skill_is_named_where_it_is_read() -> None:
    events: list[Event] = [
        ToolStarted(SUPERVISOR, "read_skill", "t0", skill="incident-triage"),
        ToolFinished(SUPERVISOR, "read_skill", "t0", True, skill="incident-triage"),
        AgentStarted("jira", "a1"),
        *(ToolStarted("jira", "read_skill", name, "a1", skill=name) for name in ("cost-review", "access-request")),
        ToolFinished("jira", "read_skill", "cost-review", True, None, "a1", skill="cost-review"),
        ToolFinished("jira", "read_skill", "access-request", True, None, "a1", skill="access-request"),
        AgentFinished("jira", "a1", True),
    ]
    assert printed(view_of(events)) == [
        "✓ Supervisor: read_skill incident-triage",
        "✓ Agent Jira",
        "    ✓ read_skill cost-review",
        "    ✓ read_skill access-request",
    ]
    assert progress(view_of(events))[0] == "  Supervisor: read_skill incident-triage: ok"


def test_a_run_at_work() -> None:
    assert live(view_of(BEGINNING)) == [
        "",
        "⠋ Calling Agent Jira...",
        "    ⠋ search_issues",
        "",
        "Plan: Compare issues",
        "  ⠋ Jira: Show Jira issues",
        "  ○ Compare the results",
    ]


def test_before_the_first_event_one_sees_that_it_works() -> None:
    assert live(View()) == ["⠋ Working..."]


def test_a_narrow_terminal_wraps_below_the_text_and_cuts_what_moves() -> None:
    reason = "the issue does not exist or you may not see it"
    events = [
        AgentStarted("jira", "a"),
        ToolStarted("jira", "get_issue_with_all_its_comments_and_links", "t", "a"),
    ]
    assert live(view_of(events), width=40) == [
        "",
        "⠋ Calling Agent Jira...",
        "    ⠋ get_issue_with_all_its_comments_a…",
    ]
    ended: list[Event] = [
        ToolFinished("jira", "get_issue_with_all_its_comments_and_links", "t", False, reason, "a"),
        AgentFinished("jira", "a", False, reason),
    ]
    lines = printed(view_of([*events, *ended]), width=40)
    assert max(map(len, lines)) <= 40
    assert lines[:2] == ["✗ Agent Jira: failed: the issue does not", "  exist or you may not see it"]


def test_tools_that_ended_alike_are_counted_and_only_the_last_are_shown_while_an_agent_works() -> None:
    def calls(tool: str, count: int) -> list[Event]:
        numbers = [f"{tool}{number}" for number in range(count)]
        starts: list[Event] = [ToolStarted("jira", tool, number, "a") for number in numbers]
        return [*starts, *(ToolFinished("jira", tool, number, True, None, "a") for number in numbers)]

    events = [AgentStarted("jira", "a"), *calls("get_issue", 12), *(e for n in range(6) for e in calls(f"tool_{n}", 1))]
    assert live(view_of(events)) == [
        "",
        "⠋ Calling Agent Jira...",
        "    ... 2 before",
        *(f"    ✓ tool_{number}" for number in range(1, 6)),
    ]
    shown = printed(view_of([*events, AgentFinished("jira", "a", True)]))
    assert shown[:3] == ["✓ Agent Jira", "    ✓ get_issue x12", "    ✓ tool_0"]


@pytest.mark.parametrize("height", [4, 10, 20])
@pytest.mark.parametrize("width", [20, 40, 120])
def test_what_moves_is_never_taller_than_the_screen(width: int, height: int) -> None:
    steps = tuple(PlanStep(str(number), f"Step {number} " * 9, "pending", number, "jira") for number in range(30))
    events: list[Event] = [PlanUpdated(steps, "Long"), *(AgentStarted("jira", f"a{number}") for number in range(30))]
    events.append(TextDelta(SUPERVISOR, "m", "\n".join(f"- item {number} of the list" for number in range(60))))
    lines = live(view_of(events), width, height)
    assert 0 < len(lines) < height
    assert all(len(line) <= width for line in lines)


def test_of_a_long_text_the_end_is_seen_while_it_is_written() -> None:
    text = "\n".join(f"- item {number}" for number in range(60))
    lines = live(view_of([TextDelta(SUPERVISOR, "m", text)]), height=10)
    assert lines[0] == "..."
    assert lines[-1] == " • item 59"


def test_a_table_that_does_not_fit_becomes_a_list_of_its_values() -> None:
    table = (
        "| Key | Summary | Type | Status | Assignee |\n| --- | --- | --- | --- | --- |\n"
        "| S-1 | The shop is slow | Bug | Open | Lena |\n| S-2 | No tax | Bug | Done | Ravi |\n"
    )
    view = view_of([*said("m", table), FinalResult(table, "m")])
    assert printed(view, 100)[0].split() == ["Key", "Summary", "Type", "Status", "Assignee"]
    narrow = printed(view, 40)
    assert narrow[:2] == [" Key: S-1", " Summary: The shop is slow"]
    assert narrow[5:7] == ["", " Key: S-2"]


def test_nothing_is_left_out_of_a_table() -> None:
    address = "priya.nair@payments.acme.example"
    table = f"| On call | Email |\n| --- | --- |\n| Priya Nair of the payments team | {address} |\n"
    lines = printed(view_of([*said("m", table), FinalResult(table, "m")]), 40)
    assert lines[0].split() == ["On", "call", "Email"]
    assert "…" not in "".join(lines)
    column = lines[0].index("Email")
    assert "".join(line[column:].strip() for line in lines[2:]) == address


def test_rows_follow_the_width_of_the_terminal() -> None:
    from rich.segment import Segment

    lines = [[Segment("x" * 80)], [], [Segment("x" * 41)]]
    assert [rows(lines, width) for width in (80, 100, 40)] == [3, 3, 5]


def test_failures_cancellations_and_limits_are_said_in_words() -> None:
    failed = view_of([Failed("model", "The model cannot be reached.", "Two issues.")])
    assert printed(failed) == [
        "Results until then:",
        "Two issues.",
        "",
        "✗ Failed: The model cannot be reached.",
    ]
    assert progress(failed) == ["Results until then:", "Two issues.", "Failed: The model cannot be reached."]
    assert printed(view_of([Canceled()])) == ["✗ Canceled."]
    limited = view_of([*said("m", "So far."), FinalResult("So far.", "m", "recursion_limit")])
    assert "A limit was reached" in printed(limited)[-2]
    assert "A limit was reached" in progress(limited)[0]
    warned = view_of([*said("m", "Done."), FinalResult("Done.", "m", budget_warning="85 % are used.")])
    assert "85 % are used." in printed(warned)
    assert progress(warned) == ["85 % are used."]


def test_a_form_shows_its_question_and_its_fields() -> None:
    fields = (
        FormField("name", field_description="Name of the repository"),
        FormField("visibility", "select", field_values=("public", "private"), default_value="private", required=False),
    )
    form = Form("f", "Create GitHub Repo", fields, response="I need a few details.", agent="github")
    events: list[Event] = [AgentStarted("github", "a"), InputRequired((form,))]
    shown = [
        "Input needed (Github): Create GitHub Repo",
        "  I need a few details.",
        "  - name (text, required): Name of the repository",
        "  - visibility (select, optional, one of public, private, now private)",
    ]
    lines = printed(view_of(events), 120)
    assert lines == ["? Agent Github", *shown]
    assert progress(view_of(events))[1:] == ["Agent Github: waiting", *shown]


def test_an_approval_shows_what_would_be_done() -> None:
    shown = [
        "Approval needed (Argocd): Approve delete_application?",
        "  Deletes an application and all that runs for it.",
        "  Argocd would call delete_application with",
        '    application: "payments-api"',
        "    cascade: true",
        '    token: "***"',
    ]
    assert printed(view_of([InputRequired((DELETE,))])) == shown
    assert progress(view_of([InputRequired((DELETE,))])) == shown


def test_a_form_that_came_back_shows_what_is_wrong() -> None:
    refused = fill(REPO, {"name": "de"})
    assert isinstance(refused, InvalidForm)
    lines = progress(view_of([InputRequired((refused.form,))]))
    place = lines.index("  - name (text, at least 3 characters, required, now de): Name of the repository")
    assert lines[place + 1] == f"    {refused.form.fields[0].error}"


def test_a_run_that_goes_on_tells_only_what_is_new() -> None:
    stopped = view_of([*BEGINNING, InputRequired((REPO,))])
    done: list[Event] = [
        ToolFinished("jira", "search_issues", "t1", True, None, "a1", "s1"),
        AgentFinished("jira", "a1", True, None, None, "s1"),
        plan("completed", "completed"),
        *said("m2", "Done."),
        FinalResult("Done.", "m2"),
    ]
    shown, lines = printed(stopped), progress(stopped)
    view = fold(reduce, done, resume_view(stopped))
    assert printed(view)[: len(shown)] == shown
    assert printed(view)[len(shown) :] == [
        "",
        "✓ Agent Jira",
        "    ✓ search_issues",
        "",
        "Plan: Compare issues",
        "  ✓ Jira: Show Jira issues",
        "  ✓ Compare the results",
        "",
        "Done.",
    ]
    assert progress(view)[: len(lines)] == lines
    assert progress(view)[len(lines) :] == [
        "  Jira: search_issues: ok",
        "Agent Jira: ok",
        "  [x] Jira: Show Jira issues",
        "  [x] Compare the results",
    ]
    assert live(resume_view(stopped))[1:3] == ["⠋ Calling Agent Jira...", "    ⠋ search_issues"]


def test_a_form_that_is_asked_again_does_not_tell_again_who_waits() -> None:
    again = reduce(resume_view(view_of([*BEGINNING, InputRequired((REPO,))])), InputRequired((KEY,)))
    assert sum("Agent Jira" in line for line in printed(again)) == 1
    assert sum("Agent Jira: waiting" in line for line in progress(again)) == 1
    assert printed(again)[-2:] == [
        "Input needed (Registry): Sign in",
        "  - api_key (text, required): Key of the registry",
    ]


def test_plain_lines_of_a_whole_run() -> None:
    assert progress(view_of(RUN)) == [
        "I'll ask Jira.",
        "Plan: Compare issues",
        "  [ ] Jira: Show Jira issues",
        "  [ ] Compare the results",
        "Calling Agent Jira...",
        "  Jira: search_issues: ok",
        "  Jira: get_issue: failed: no such issue",
        "Agent Jira: ok",
        "  [x] Jira: Show Jira issues",
        "  [x] Compare the results",
    ]
    assert answers(view_of(RUN)) == [ANSWER.strip("\n")]


def test_plain_lines_tell_what_happened_while_it_happens() -> None:
    so_far = progress(view_of(BEGINNING))
    assert so_far == progress(view_of(RUN))[: len(so_far)]
    assert so_far[-1] == "Calling Agent Jira..."


@settings(max_examples=60, deadline=None)
@given(strategies.runs())
def test_plain_lines_are_only_ever_added(run: list[Event]) -> None:
    before: list[str] = []
    for view in views_of(run):
        after = progress(view)
        assert after[: len(before)] == before
        before = after


@settings(max_examples=60, deadline=None)
@given(strategies.runs())
def test_the_answer_is_shown_once_and_every_agent_is_named(run: list[Event]) -> None:
    run = marked(run)
    view = view_of(run)
    worked = {event.agent for event in run if isinstance(event, AgentStarted | ToolStarted)}
    transcripts = {
        "plain": "\n".join([*progress(view), *answers(view)]),
        "wide": "\n".join(printed(view, 160)),
        "narrow": "\n".join(printed(view, 40)),
    }
    for name, transcript in transcripts.items():
        assert transcript.count(MARKER) == isinstance(run[-1], FinalResult), name
        assert all(display(agent) in transcript for agent in worked), name
        assert clean(transcript) == transcript, name
    if isinstance(run[-1], FinalResult):
        assert answers(view) == [run[-1].text]


def marked(run: list[Event]) -> list[Event]:
    """The run with a word for an answer that occurs nowhere else, in pieces."""
    ending = run[-1]
    if not isinstance(ending, FinalResult):
        return run
    answer = ending.answer_message_id
    rest = [event for event in run if not (isinstance(event, TextDelta) and event.message_id == answer)]
    place = next(number for number, event in enumerate(rest) if getattr(event, "message_id", None) == answer)
    pieces: list[Event] = [TextDelta(SUPERVISOR, answer, piece) for piece in (MARKER[:5], MARKER[5:])]
    return [*rest[:place], *pieces, *rest[place:-1], FinalResult(MARKER, answer, ending.limit)]


def test_symbols_are_those_the_terminal_can_write() -> None:
    assert symbols_for("utf-8") is UNICODE
    assert symbols_for("ascii") is ASCII
    assert all(symbol.isascii() for symbol in (ASCII.ok, ASCII.failed, ASCII.pending, ASCII.running, ASCII.prompt))
