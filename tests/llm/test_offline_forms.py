"""What the offline model does as an agent when a request does not say enough, and when people say no."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException

from ai_platform_engineering.approvals.edited_call import with_edited_arguments, with_notes
from ai_platform_engineering.forms.filling import FilledForm, fill
from ai_platform_engineering.forms.response import CAIPEAgentResponse
from ai_platform_engineering.offline_model import OfflineChatModel
from tests.llm.offline_world import (
    AGENTS,
    PROMPT,
    WRITE,
    argocd_tools,
    calls_of,
    form_tool,
    jira_tools,
    optional,
    run_agent,
    run_supervisor,
    supervisor_tools,
    text,
    tool,
)
from tests.llm.test_offline_agent import CALLS

MODEL = OfflineChatModel()
FORM = "request_user_input"
ROLLBACK_CALL = {"name": "rollback_application", "args": {"application": "checkout"}, "id": "c-1"}


def asked(agent: str, question: str, *answers: dict[str, Any] | str, tools: list[BaseTool] | None = None) -> Any:
    """All messages of a run in which a person gives these answers to the forms."""
    own = AGENTS[agent][1]() if tools is None else tools
    return run_agent(MODEL, agent, question, [*own, form_tool(*answers)])


def form_of(agent: str, question: str, tools: list[BaseTool] | None = None) -> dict[str, Any]:
    """The only form of a run that a person cancels."""
    ((_, form),) = calls_of(asked(agent, question, "The person canceled the form.", tools=tools), FORM)
    return form


def fields_of(form: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {field["name"]: {key: value for key, value in field.items() if key != "name"} for field in form["fields"]}


def rejecting(name: str, tools: list[BaseTool], answer: str) -> list[BaseTool]:
    """The tools, one of them as if a person had to approve it and did not."""

    def refuse(**_: Any) -> str:
        raise ToolException(answer)

    replaced = tool(name, "Refused.", {}, refuse, metadata=WRITE)
    return [
        item.model_copy(update={"func": getattr(replaced, "func", None)}) if item.name == name else item
        for item in tools
    ]


@pytest.mark.parametrize(("agent", "question", "expected"), CALLS, ids=[question for _, question, _ in CALLS])
def test_a_question_that_says_enough_is_not_answered_with_a_form(
    agent: str, question: str, expected: list[tuple[str, dict[str, Any]]]
) -> None:
    model = MODEL.bind_tools([*AGENTS[agent][1](), form_tool()])
    assert calls_of([model.invoke([SystemMessage(PROMPT.format(name=agent)), HumanMessage(question)])]) == expected


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("question", ["ask me something", "request user input", "show the title", "start a workflow"])
def test_a_form_is_never_picked_for_its_words(agent: str, question: str) -> None:
    messages = run_agent(MODEL, agent, question, [*AGENTS[agent][1](), form_tool()])
    assert calls_of(messages, FORM) == []


def test_the_form_has_a_title_a_sentence_and_the_schema_of_what_is_missing() -> None:
    form = form_of("netutils", "check a port")
    assert form["title"] == "Check port"
    assert form["description"] == "I need the host and the port before I can call `check_port`."
    assert fields_of(form) == {
        "host": {"type": "text", "description": "Host name or address", "required": True},
        "port": {
            "type": "number",
            "description": "TCP port",
            "required": True,
            "minimum": 1,
            "maximum": 65535,
            "integer": True,
        },
    }


def test_the_call_is_made_with_the_values_and_integers_stay_integers() -> None:
    messages = asked("netutils", "check a port", {"host": "example.com", "port": 8443.0})
    ((_, arguments),) = calls_of(messages, "check_port")
    assert arguments == {"host": "example.com", "port": 8443}
    assert type(arguments["port"]) is int
    assert "- **Port:** 8443" in messages[-1].text
    assert len(calls_of(messages)) == 2


def test_what_the_question_says_is_kept_and_shown_and_only_the_rest_is_asked_for() -> None:
    messages = asked("netutils", "check port 443", {"host": "example.com"})
    form, call = calls_of(messages)
    assert form[1]["description"] == "I need the host before I can call `check_port` (port 443)."
    assert list(fields_of(form[1])) == ["host"]
    assert call == ("check_port", {"host": "example.com", "port": 443})


def test_for_something_new_the_form_offers_what_makes_it_complete() -> None:
    form = form_of("jira", "create a ticket")
    assert form["title"] == "Create issue"
    assert fields_of(form) == {
        "summary": {"type": "text", "description": "One line that says what it is about", "required": True},
        "project": {"type": "text", "description": "Key of the project", "required": False, "default": "SHOP"},
        "description": {"type": "multiline", "description": "The details", "required": False},
        "issue_type": {
            "type": "select",
            "description": "Type",
            "required": False,
            "options": ["Bug", "Task", "Story"],
        },
        "priority": {
            "type": "select",
            "description": "Priority",
            "required": False,
            "options": ["Highest", "High", "Medium", "Low"],
        },
    }


def test_a_value_that_was_left_empty_is_left_out() -> None:
    values = {"summary": "Login is slow", "project": "SHOP", "description": "", "priority": None}
    messages = asked("jira", "create a ticket", values)
    assert calls_of(messages, "create_issue") == [("create_issue", {"summary": "Login is slow", "project": "SHOP"})]
    assert messages[-1].text.startswith("Created issue **SHOP-120**.")


def test_an_enumeration_becomes_a_choice() -> None:
    messages = asked("jira", "move SHOP-118", {"status": "In Review"})
    form, call = calls_of(messages)
    assert fields_of(form[1]) == {
        "status": {
            "type": "select",
            "description": "New status",
            "required": True,
            "options": ["To Do", "In Progress", "In Review", "Done"],
        }
    }
    assert call == ("transition_issue", {"issue_key": "SHOP-118", "status": "In Review"})


def test_looked_up_values_become_options_and_are_not_in_the_answer() -> None:
    messages = asked("argocd", "sync the app", {"application": "checkout"})
    lookup, form, call = calls_of(messages)
    assert lookup == ("list_applications", {})
    assert fields_of(form[1])["application"]["options"] == ["checkout", "guestbook", "monitoring", "payments-api"]
    assert call == ("sync_application", {"application": "checkout"})
    assert messages[-1].text.startswith("Done: sync application **checkout**.")


def test_a_listing_that_does_not_tell_all_is_no_choice() -> None:
    spaces = [{"key": f"S{number}"} for number in range(3)]
    listed = tool("list_spaces", "Spaces.", {}, lambda: {"total": 50, "spaces": spaces})
    archive = tool(
        "archive_space",
        "Archive a space.",
        {"space": text("Key of the space")},
        lambda space: "done",
        required=["space"],
        metadata=WRITE,
    )
    assert fields_of(form_of("wiki", "archive the space", [listed, archive])) == {
        "space": {"type": "text", "description": "Key of the space", "required": True}
    }


def test_words_for_the_change_do_not_limit_what_can_be_chosen() -> None:
    lookup, (_, form) = calls_of(asked("jira", "move the ticket to Done", "The person canceled the form."))
    assert lookup == ("search_issues", {})
    assert fields_of(form)["issue_key"]["options"] == ["SHOP-118", "PLAT-41", "SEC-15"]


def test_a_lookup_that_tells_is_used_without_a_form() -> None:
    messages = asked("pagerduty", "acknowledge the latency incident")
    assert calls_of(messages) == [("list_incidents", {}), ("acknowledge_incident", {"incident_id": "P4708"})]


@pytest.mark.parametrize(
    ("agent", "question", "known", "missing"),
    [
        ("github", "create a repo", "", ["name"]),
        ("github", "create a repo for the payments team", "", ["name"]),
        ("github", "create a private repository for payments-api", " (private yes)", ["name"]),
        ("github", "create an issue", "", ["repository", "title"]),
        ("github", "create an issue about slow search", " (title Slow search)", ["repository"]),
        ("github", "create an issue in the checkout repo", " (repository checkout)", ["title"]),
        ("jira", "create a ticket in PLAT", " (project PLAT)", ["summary"]),
        ("jira", "comment on SHOP-118", " (issue key SHOP-118)", ["body"]),
    ],
)
def test_nothing_is_guessed_that_can_be_asked_for(agent: str, question: str, known: str, missing: list[str]) -> None:
    form = form_of(agent, question)
    assert form["description"].endswith(f"`{known}.")
    assert [field["name"] for field in form["fields"] if field["required"]] == missing


def test_fields_of_every_type() -> None:
    create = tool(
        "create_monitor",
        "Create a monitor.",
        {
            "address": {"type": "string", "format": "uri", "description": "What to watch"},
            "contact": {"type": "string", "format": "email"},
            "interval": {"type": "integer", "enum": [1, 5, 15], "default": 5},
            "threshold": {"type": "number", "minimum": 0.5},
            "regions": {"type": "array", "items": {"type": "string", "enum": ["eu", "us"]}},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags."},
            "active": {"type": "boolean", "default": True},
            "label": optional(text("Short", minLength=2, maxLength=20)),
            "extra": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
        lambda **arguments: {"id": 4, **arguments},
        required=["address", "contact", "interval", "threshold", "regions", "tags"],
        metadata=WRITE,
    )
    values = {
        "address": "https://example.com",
        "contact": "team@example.com",
        "interval": "15",
        "threshold": 2,
        "regions": ["eu"],
        "tags": "shop, checkout",
        "active": False,
    }
    messages = asked("watch", "create a monitor", values, tools=[create])
    form, call = calls_of(messages)
    shown = CAIPEAgentResponse.model_validate(form[1]).form("watch")
    assert [field.field_type for field in shown.fields] == [field["type"] for field in form[1]["fields"]]
    assert isinstance(fill(shown, values), FilledForm)
    assert fields_of(form[1]) == {
        "address": {"type": "url", "description": "What to watch", "required": True},
        "contact": {"type": "email", "description": "Contact", "required": True},
        "threshold": {"type": "number", "description": "Threshold", "required": True, "minimum": 0.5},
        "regions": {"type": "multiselect", "description": "Regions", "required": True, "options": ["eu", "us"]},
        "tags": {"type": "text", "description": "Tags; several are separated by commas.", "required": True},
        "interval": {
            "type": "select",
            "description": "Interval",
            "required": False,
            "options": ["1", "5", "15"],
            "default": "5",
        },
        "active": {"type": "boolean", "description": "Active", "required": False, "default": True},
        "label": {"type": "text", "description": "Short", "required": False, "min_length": 2, "max_length": 20},
    }
    assert call[1] == {**values, "interval": 15, "tags": ["shop", "checkout"]}
    assert type(call[1]["interval"]) is int
    assert type(call[1]["threshold"]) is int


def test_what_no_form_can_hold_is_said_to_be_missing() -> None:
    send = tool(
        "send_event",
        "Send an event.",
        {"payload": {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}},
        lambda payload: "sent",
        required=["payload"],
        metadata=WRITE,
    )
    messages = asked("events", "send an event", tools=[send])
    assert calls_of(messages) == []
    assert messages[-1].text == "For `send_event` I need the payload; the request does not say."


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("The person canceled the form.", "The form “Create issue” was canceled, so nothing was done."),
        (
            "The person canceled the form: I will do it myself.",
            "The form “Create issue” was canceled (I will do it myself), so nothing was done.",
        ),
    ],
)
def test_a_form_that_was_canceled_ends_it(result: str, answer: str) -> None:
    messages = asked("jira", "create a ticket", result)
    assert [name for name, _ in calls_of(messages)] == [FORM]
    assert messages[-1].text == answer


def test_a_canceled_form_does_not_hide_what_was_done() -> None:
    messages = asked("jira", "show SHOP-118 and create a ticket", "The person canceled the form.")
    assert [name for name, _ in calls_of(messages)] == ["get_issue", FORM]
    assert "- **Summary:** payments-api is down" in messages[-1].text
    assert messages[-1].text.endswith("The form “Create issue” was canceled, so that was not done.")


def test_several_things_are_asked_for_one_after_the_other() -> None:
    messages = asked("jira", "create a ticket, then move SHOP-118", {"summary": "One"}, {"status": "Done"})
    assert [len(message.tool_calls) for message in messages if isinstance(message, AIMessage)] == [1, 1, 1, 1, 0]
    assert [name for name, _ in calls_of(messages)] == [FORM, "create_issue", FORM, "transition_issue"]


def test_a_later_part_can_refer_to_what_a_form_led_to() -> None:
    messages = asked("jira", "create a ticket, then comment on it: seen in staging", {"summary": "Login"})
    assert calls_of(messages)[1:] == [
        ("create_issue", {"summary": "Login"}),
        ("add_comment", {"issue_key": "SHOP-120", "body": "seen in staging"}),
    ]


def test_a_follow_up_after_a_form_is_understood() -> None:
    history = asked("jira", "create a ticket", {"summary": "Login is slow"})
    reply = MODEL.bind_tools([*jira_tools(), form_tool()]).invoke([*history, HumanMessage("move it to Done")])
    assert calls_of([reply]) == [("transition_issue", {"issue_key": "SHOP-120", "status": "Done"})]


def test_the_same_form_is_shown_again_for_a_new_request() -> None:
    history = asked("jira", "create a ticket", "The person canceled the form.")
    reply = MODEL.bind_tools([*jira_tools(), form_tool()]).invoke([*history, HumanMessage("create a ticket")])
    assert [name for name, _ in calls_of([reply])] == [FORM]


@pytest.mark.parametrize(("result", "status"), [("no such tool", "error"), ("", "success"), ("[1]", "success")])
def test_a_form_that_brought_nothing_is_not_asked_again(result: str, status: str) -> None:
    model = MODEL.bind_tools([*jira_tools(), form_tool()])
    question = HumanMessage("create a ticket")
    first = model.invoke([question])
    content = ToolMessage(result, tool_call_id=str(first.tool_calls[0]["id"]), status=status)
    reply = model.invoke([question, first, content])
    assert reply.tool_calls == []
    assert reply.text.startswith("For `create_issue` I need the summary")


def test_an_agent_with_nothing_but_the_form_says_that_it_has_no_tools() -> None:
    prompt = "You look after Jira.\n\nYou have no tools at the moment: mcp.example did not answer. Say so."
    reply = MODEL.bind_tools([form_tool()]).invoke([SystemMessage(prompt), HumanMessage("list my tickets")])
    assert reply.tool_calls == []
    assert reply.text.endswith("or change anything. The reason: mcp.example did not answer.")


def test_at_the_step_limit_a_form_is_no_result() -> None:
    messages = asked("argocd", "sync the app", "The person canceled the form.")[:-1]
    reply = MODEL.invoke([*messages, HumanMessage("You have used all the steps you may take.")])
    assert FORM not in reply.text
    assert "canceled the form" not in reply.text


def test_the_supervisor_asks_for_what_its_own_tools_need() -> None:
    grade = tool(
        "grade_answer",
        "Grade an answer from the documents.",
        {"score": {"type": "integer", "minimum": 1, "maximum": 5, "description": "Score"}},
        lambda score: "thanks",
        required=["score"],
    )
    model = MODEL.bind_tools([*supervisor_tools(), grade, form_tool()])
    question = HumanMessage("grade the answer")
    reply = model.invoke([question])
    assert [name for name, _ in calls_of([reply])] == [FORM]
    result = ToolMessage('{"score": 4}', tool_call_id=str(reply.tool_calls[0]["id"]))
    assert calls_of([model.invoke([question, reply, result])]) == [("grade_answer", {"score": 4})]


def test_the_supervisor_leaves_the_asking_to_the_agents() -> None:
    model = MODEL.bind_tools([*supervisor_tools(), form_tool()])
    assert [name for name, _ in calls_of([model.invoke([HumanMessage("create a Jira ticket")])])] == ["write_todos"]


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (
            "A person rejected this call: not on a Friday",
            "`rollback_application` (application checkout) was not run: a person rejected it. "
            "The reason: not on a Friday.",
        ),
        (
            "A person rejected this call.",
            "`rollback_application` (application checkout) was not run: a person rejected it.",
        ),
    ],
)
def test_a_call_that_a_person_rejected_is_said_to_be_undone_and_not_tried_again(content: str, answer: str) -> None:
    tools = rejecting("rollback_application", argocd_tools(), content)
    messages = asked("argocd", "roll back checkout", tools=tools)
    assert calls_of(messages) == [("rollback_application", {"application": "checkout"})]
    assert messages[-1].text == answer


def test_the_rest_is_done_when_one_call_is_rejected() -> None:
    tools = rejecting("rollback_application", argocd_tools(), "A person rejected this call: wait")
    messages = asked("argocd", "roll back checkout and show the guestbook app", tools=tools)
    assert "was not run: a person rejected it. The reason: wait." in messages[-1].text
    assert "- **Name:** guestbook" in messages[-1].text


def test_a_tool_that_fails_with_other_words_has_failed() -> None:
    tools = rejecting("sync_application", argocd_tools(), "A person rejected this call-up list; no such app.")
    assert "failed: A person rejected this call-up list" in asked("argocd", "sync guestbook", tools=tools)[-1].text


def test_arguments_that_a_person_changed_are_what_was_done() -> None:
    question, call = HumanMessage("roll back checkout"), AIMessage("", tool_calls=[ROLLBACK_CALL])
    output = ToolMessage('{"name": "guestbook", "sync_status": "OutOfSync"}', tool_call_id="c-1")
    result = with_edited_arguments(output, {"application": "guestbook", "revision": 2})
    for shown in ([question, call, result], with_notes([question, call, result])):
        answer = MODEL.bind_tools(argocd_tools()).invoke([SystemMessage("You are the argocd agent."), *shown])
        assert answer.text == (
            "A person changed the arguments.\n\nDone: rollback application **guestbook**.\n\n"
            "- **Name:** guestbook\n- **Sync status:** OutOfSync"
        )


def _delegated(question: str, result: str, status: str = "success") -> AIMessage:
    """The supervisor's next turn when its first delegation gave this result."""
    model = MODEL.bind_tools(supervisor_tools())
    messages: list[Any] = [HumanMessage(question)]
    for content, state in (("The plan is written.", "success"), (result, status)):
        reply = model.invoke(messages)
        messages += [reply, ToolMessage(content, tool_call_id=str(reply.tool_calls[0]["id"]), status=state)]
    last = model.invoke(messages)
    assert isinstance(last, AIMessage)
    return last


def test_the_supervisor_tells_what_was_rejected() -> None:
    content = "`rollback_application` (application checkout) was not run: a person rejected it. The reason: wait."
    assert _delegated("roll back checkout in argocd", content).text.startswith(content)
    failed = _delegated("roll back checkout in argocd", "A person rejected this call: wait", "error")
    assert failed.text.startswith("Argocd did not do this: a person rejected it. The reason: wait.")


def test_what_was_to_follow_something_rejected_is_not_done() -> None:
    question = "create a github repo called demo, then create a jira ticket for it"
    content = "`create_repository` (name demo) was not run: a person rejected it. The reason: see SEC-15."
    reply = _delegated(question, content)
    assert reply.tool_calls == []
    assert "Not done: create a jira ticket for it." in reply.text


def test_without_the_form_tool_everything_is_as_it_was() -> None:
    assert run_supervisor(MODEL, "create a Jira ticket")[-1].text.startswith(
        "For `create_issue` I need the summary (One line that says what it is about); the request does not say."
    )
