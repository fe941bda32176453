"""The forms of a run that waits: which are shown, in which order, and under which ids."""

from __future__ import annotations

from dataclasses import replace

from ai_platform_engineering.call_ledger import CallLedger, LedgerCall
from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.questions import question_data
from ai_platform_engineering.runs.questions import Questions

NAME = Form("", "Which name?", (FormField("name"),))


def note(questions: Questions, interrupt: str, call_id: str = "c", parent: str | None = None) -> None:
    questions.add(call_id, [{"id": interrupt, "value": question_data(NAME)}], parent, "jira")


def shown(questions: Questions, *calls: LedgerCall) -> list[str]:
    ledger = CallLedger()
    for call in calls:
        [*ledger.start(call)]
    return [form.form_id for form in questions.forms(ledger)]


def test_a_question_asked_again_after_its_answer_is_the_next_form() -> None:
    for answered, expected in ((None, "i"), ("i", "i-2"), ("i-2", "i-3"), ("i-9", "i-10")):
        questions = Questions()
        if answered:
            questions.answered(replace(NAME, form_id=answered))
        note(questions, "i")
        assert shown(questions) == [expected]


def test_an_open_form_comes_back_as_it_was_filled_in_and_an_answered_one_does_not() -> None:
    filled = replace(NAME, form_id="i-2", fields=(FormField("name", value="demo"),))
    questions = Questions()
    questions.restore([filled])
    note(questions, "i")
    assert questions.forms(CallLedger()) == (filled,)
    answered = Questions()
    answered.restore([filled])
    answered.answered(filled)
    answered.answered(replace(NAME, form_id="never-1"))
    note(answered, "i")
    (form,) = answered.forms(CallLedger())
    assert (form.form_id, form.fields[0].value) == ("i-3", None)


def test_the_number_of_a_form_is_known_after_others_were_asked() -> None:
    questions = Questions()
    questions.restore([replace(NAME, form_id="i-2")])
    questions.restore([replace(NAME, form_id="k")])
    note(questions, "i")
    assert shown(questions) == ["i-2"]


def test_forms_come_in_the_order_of_the_calls_one_for_each_agent() -> None:
    questions = Questions()
    note(questions, "late", "t2", "d2")
    note(questions, "second", "t1b", "d1")
    note(questions, "first", "t1a", "d1")
    note(questions, "own", "t0")
    note(questions, "own", "t9")
    calls = [
        LedgerCall("t0", "supervisor", "ask"),
        LedgerCall("d1", "jira"),
        LedgerCall("d2", "argocd"),
        LedgerCall("t1a", "jira", "ask", "d1"),
        LedgerCall("t1b", "jira", "ask", "d1"),
        LedgerCall("t2", "argocd", "ask", "d2"),
    ]
    assert shown(questions, *calls) == ["own", "first", "late"]
