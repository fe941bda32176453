"""What the offline model does with a knowledge base: when it asks it, what it reads, and what it answers."""

from __future__ import annotations

import json
import re
import time

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ai_platform_engineering.knowledge_bases.rag.documents import Document
from ai_platform_engineering.offline_model import OfflineChatModel
from tests.llm.offline_library import Library, consult, document
from tests.llm.offline_world import calls_of

MODEL = OfflineChatModel()

README, AGENTS, CONFIGURATION = "README.md", "docs/agents.md", "docs/configuration.md"
DEPLOY, FORMS, OPERATE, TERMINAL = "docs/deploy.md", "docs/forms.md", "docs/operate.md", "docs/terminal.md"
ARCHITECTURE, PERFORMANCE, WORKFLOWS = "docs/architecture.md", "docs/performance.md", "docs/workflows.md"

RUNBOOK = document(
    "runbooks/rollback.md",
    "# Rollback runbook\n\n"
    "Roll back when a release makes errors rise above two percent. Tell the on-call person first.\n\n"
    "To roll back, take the previous revision:\n\n```bash\nargocd app rollback guestbook 41\n```\n\n"
    "## Afterwards\n\nWrite down what happened within a day.\n",
    "https://wiki.example.com/rollback",
)


def answer_of(messages: list[BaseMessage]) -> str:
    return str(messages[-1].text).split("\n\n_Answered by the offline model")[0]


def texts_of(messages: list[BaseMessage]) -> list[str]:
    return [str(message.text) for message in messages if isinstance(message, AIMessage)]


def names_of(messages: list[BaseMessage]) -> list[list[str]]:
    """The names of the tools that were called, turn by turn."""
    turns = [message.tool_calls for message in messages if isinstance(message, AIMessage)]
    return [[call["name"] for call in calls] for calls in turns if calls]


def sources_of(answer: str) -> list[str]:
    """What the list of sources leads to, in its order."""
    _, _, listed = answer.partition("Sources:\n\n")
    return re.findall(r"^\d+\. .*?[(`]+([^()`]+)[)`]+$", listed, re.M)


QUESTIONS = [
    (
        "how do I run ArgoCD remotely?",
        [f"{README} > Where agents run", f"{CONFIGURATION} > Per agent", f"{DEPLOY} > One agent remotely"],
        README,
        ".venv/bin/platform-engineer agent argocd --port 8001",
    ),
    (
        "what does DISTRIBUTED_AGENTS do?",
        [f"{DEPLOY} > Placement", f"{CONFIGURATION} > Placement"],
        CONFIGURATION,
        "Agents that run remotely: comma-separated names, for example `argocd,jira`, or `all`.",
    ),
    (
        "what is a workflow?",
        [f"{WORKFLOWS} > Built-in workflows", FORMS],
        WORKFLOWS,
        "A workflow is a declared self-service procedure: a form, and steps that run in the order of the file.",
    ),
    (
        "explain placement",
        [f"{ARCHITECTURE} > The packages", f"{DEPLOY} > Placement"],
        DEPLOY,
        "If it is not set, the agent is enabled when its required settings are set",
    ),
    (
        "where are tasks stored?",
        [f"{OPERATE} > Retention of ended tasks", f"{CONFIGURATION} > Storage"],
        OPERATE,
        "Every event of a task is written to `tasks.db` in `DATA_DIR` before a client sees it",
    ),
    (
        "which settings does the jira agent require?",
        [f"{DEPLOY} > One agent remotely", f"{README} > Where agents run", f"{AGENTS} > Built-in agents"],
        AGENTS,
        "`JIRA_URL`, `JIRA_API_TOKEN`",
    ),
    (
        "how long does a form wait?",
        [FORMS, f"{OPERATE} > Limits"],
        FORMS,
        "The task then waits until the form is answered or expires (`FORM_EXPIRY_HOURS`)",
    ),
    (
        "how do I switch an agent off?",
        [f"{CONFIGURATION} > Per agent", f"{README} > Where agents run"],
        README,
        "`ENABLE_<NAME>=false` disables an agent, wherever it runs.",
    ),
    (
        "what is the exit code when input is needed?",
        [f"{TERMINAL} > In pipes and scripts", WORKFLOWS],
        TERMINAL,
        "3: input is needed: a form or an approval waits for an answer",
    ),
    (
        "how do I choose a model?",
        [f"{README} > A model and real backends", f"{CONFIGURATION} > Model"],
        README,
        "LLM_PROVIDER=openai",
    ),
    (
        "how do I reset the sandbox?",
        [f"{OPERATE} > The sandbox", f"{CONFIGURATION} > Sandbox"],
        OPERATE,
        ".venv/bin/platform-engineer sandbox reset",
    ),
    (
        "how does authentication work?",
        [f"{DEPLOY} > Authentication", f"{CONFIGURATION} > Server"],
        DEPLOY,
        "With a key or an OAuth2 issuer set, every path except `/healthz`, `/readyz`, the agent card, the files of the "
        "web page",
    ),
    (
        "how do I approve a call from a script?",
        [f"{TERMINAL} > Forms and approvals", f"{TERMINAL} > In pipes and scripts"],
        TERMINAL,
        "platform-engineer chat --task 7c1e... --approve",
    ),
    (
        "how do I replay a recording?",
        [f"{TERMINAL} > Recordings", ARCHITECTURE],
        TERMINAL,
        ".venv/bin/platform-engineer replay run.jsonl",
    ),
    (
        "why do I get 401 from a remote agent?",
        [f"{DEPLOY} > Authentication", f"{OPERATE} > When something is wrong"],
        OPERATE,
        "Key, issuer or audience differ. (Set the same `A2A_AGENTS_AUTH_KEY` on…)",
    ),
    (
        "why does an agent have no tools?",
        [f"{AGENTS} > Calls that wait for a person", f"{OPERATE} > When something is wrong"],
        OPERATE,
        "Its MCP server did not start.",
    ),
    (
        "what does MCP_START_TIMEOUT mean?",
        [f"{CONFIGURATION} > MCP", f"{ARCHITECTURE} > The packages"],
        CONFIGURATION,
        "Seconds that the start of the supervisor or of an agent waits for its MCP servers.",
    ),
    (
        "what is a placeholder in a workflow?",
        [f"{WORKFLOWS} > Write your own workflow", FORMS],
        WORKFLOWS,
        "If a placeholder is the whole value, the type is kept, so a number stays a number",
    ),
    (
        "how do I run every agent outside with containers?",
        [f"{DEPLOY} > Containers", f"{README} > Where agents run"],
        DEPLOY,
        "`DISTRIBUTED_AGENTS=all docker compose --profile all-agents up -d`",
    ),
    (
        "which paths need no authentication?",
        [f"{DEPLOY} > Authentication", f"{DEPLOY} > Health"],
        DEPLOY,
        "every path except `/healthz`, `/readyz`, the agent card, the files of the web page and its ",
    ),
    (
        "how do I measure performance on my own machine?",
        [PERFORMANCE, f"{PERFORMANCE} > The machine"],
        PERFORMANCE,
        "make bench",
    ),
    (
        "what is an approval?",
        [f"{FORMS} > How to answer", f"{FORMS} > What is asked"],
        FORMS,
        "An approval is a form with `action_requests`: the agent, the tool and its arguments.",
    ),
    (
        "what does the event log do with ended tasks?",
        [f"{OPERATE} > Retention of ended tasks", f"{CONFIGURATION} > Storage"],
        OPERATE,
        "ended tasks are deleted that are older than `EVENT_LOG_MAX_AGE_DAYS`",
    ),
    (
        "how do I list failed tasks?",
        [f"{OPERATE} > Stored tasks", f"{OPERATE} > Logs"],
        OPERATE,
        ".venv/bin/platform-engineer tasks list --limit 10 --state failed",
    ),
    (
        "according to the docs, which values does REQUIRE_APPROVAL allow?",
        [f"{CONFIGURATION} > Approvals", f"{AGENTS} > Calls that wait for a person"],
        AGENTS,
        "`never`, `destructive`, `writes` or `always`",
    ),
    (
        "how can I run a workflow from a script?",
        [WORKFLOWS, f"{TERMINAL} > In pipes and scripts"],
        WORKFLOWS,
        ".venv/bin/platform-engineer workflows run create_github_repo --set repository=demo --set private=yes",
    ),
    (
        "what does the call ledger do?",
        [f"{ARCHITECTURE} > The packages", f"{ARCHITECTURE} > The path of a request"],
        ARCHITECTURE,
        "The call ledger guarantees that every start has exactly one end",
    ),
    (
        "what does EVENT_LOG_MAX_TASKS mean?",
        [f"{CONFIGURATION} > Storage", f"{OPERATE} > Limits"],
        CONFIGURATION,
        "Maximum number of ended tasks that are kept. The oldest are deleted first, together with their conversations.",
    ),
]


@pytest.mark.parametrize(("question", "places", "path", "sentence"), QUESTIONS, ids=[item[0] for item in QUESTIONS])
def test_questions_about_real_documents(question: str, places: list[str], path: str, sentence: str) -> None:
    messages = consult(MODEL, question, Library(*places))
    assert names_of(messages)[0] == ["search"]
    assert set(names_of(messages)[1]) == {"fetch_document"}
    answer = answer_of(messages)
    assert sentence in answer
    assert path in sources_of(answer)
    number = sources_of(answer).index(path) + 1
    assert f"[{number}]" in answer.partition("Sources:")[0]
    assert len(answer) < 3000
    assert "{" not in answer.partition("{{")[0] or "```" in answer


def test_a_turn_to_search_a_turn_to_read_a_turn_to_answer() -> None:
    library = Library(f"{README} > Where agents run", f"{DEPLOY} > One agent remotely")
    messages = consult(MODEL, "how do I run ArgoCD remotely?", library)
    assert calls_of(messages) == [
        ("search", {"query": "how do I run ArgoCD remotely"}),
        ("fetch_document", {"document_id": "docs:README.md"}),
        ("fetch_document", {"document_id": "docs:docs/deploy.md"}),
    ]
    searching, reading, answering = texts_of(messages)
    assert searching == "I'll search the knowledge base for how to run ArgoCD remotely."
    assert reading == "I'll read “Platform Engineer” and “Deploy”."
    assert "```ini\n# Argo CD and Jira run as separate processes" in answering
    assert answering.endswith("_Answered by the offline model, which matches words and does not reason. "
                              "Set `LLM_PROVIDER` to use a language model._")  # fmt: skip


@pytest.mark.parametrize(
    ("question", "query", "narration"),
    [
        ("how do I run ArgoCD remotely?", "how do I run ArgoCD remotely", "how to run ArgoCD remotely"),
        ("please tell me how to add an agent", "how to add an agent", "how to add an agent"),
        ("what is agntcy slim?", "what is agntcy slim", "what agntcy slim is"),
        ("what are workflows?", "what are workflows", "what workflows are"),
        ("what's gitops?", "what's gitops", "what gitops is"),
        ("what does DISTRIBUTED_AGENTS do?", "what does DISTRIBUTED_AGENTS do", "what DISTRIBUTED_AGENTS does"),
        ("can you explain placement?", "explain placement", "placement"),
        ("search the knowledge base for health checks", "health checks", "health checks"),
        ("look up retention in the docs", "retention", "retention"),
        (
            "according to the docs, what is a form?",
            "what is a form",
            "what a form is",
        ),
        (
            "what does the runbook say about rollbacks?",
            "runbook rollbacks",
            "what the runbook says about rollbacks",
        ),
        (
            "why does an agent have no tools?",
            "why does an agent have no tools",
            "an answer to “why does an agent have no tools”",
        ),
        (
            "which settings does the doctor look at?",
            "which settings does the doctor look at",
            "an answer to “which settings does the doctor look at”",
        ),
        ("where is slim documented?", "where is slim documented", "an answer to “where is slim documented”"),
        ("tell me about the offline model", "about the offline model", "the offline model"),
        ("what's the weather in Paris?", "what's the weather in Paris", "an answer to “what's the weather in Paris”"),
    ],
)  # fmt: skip
def test_what_is_searched_for_and_what_is_said_before(question: str, query: str, narration: str) -> None:
    messages = consult(MODEL, question, Library())
    assert calls_of(messages) == [("search", {"query": query})]
    assert texts_of(messages)[0] == f"I'll search the knowledge base for {narration}."


@pytest.mark.parametrize(
    "question",
    [
        "show argocd version",
        "who is on call?",
        "list my Jira tickets",
        "sync the guestbook app",
        "can you sync guestbook?",
        "which applications are out of sync?",
        "why is guestbook out of sync?",
        "what is wrong with payments-api?",
        "what is the status of guestbook?",
        "what are the open incidents?",
        "what is on call?",
        "describe the guestbook app",
        "explain incident P4711",
        "how many incidents are open?",
        "how is the guestbook app doing?",
        "how are the argocd apps looking?",
        "is port 443 open on example.com?",
        "when does the certificate of example.com expire?",
        "create a Jira ticket: how do I run ArgoCD remotely?",
        "create a Jira ticket about the missing documentation",
        "list GitHub issues about the docs",
        "compare Jira and GitHub issues",
    ],
)
def test_what_agents_serve_stays_with_them(question: str) -> None:
    messages = consult(MODEL, question, Library(README))
    assert {name for turn in names_of(messages) for name in turn} <= {"write_todos", "task"}
    assert calls_of(messages, "task")
    assert "Sources:" not in answer_of(messages)


@pytest.mark.parametrize(
    "question", ["order me a pizza", "could you book me a flight?", "42", "hi", "what can you do?"]
)
def test_what_is_no_question_is_not_searched_for(question: str) -> None:
    assert calls_of(consult(MODEL, question, Library(README))) == []


def test_nothing_in_a_question_of_how_to_do_something_is_done() -> None:
    messages = consult(MODEL, "how do I stop the server, delete the guestbook app and sync it again?", Library())
    assert names_of(messages) == [["search"]]


def test_nothing_found_is_said_with_what_can_be_done() -> None:
    answer = answer_of(consult(MODEL, "what is agntcy slim?", Library()))
    assert answer.startswith("I found nothing in the knowledge base about “what is agntcy slim”.")
    assert "- **Pagerduty**: PagerDuty incidents and on-call schedules." in answer
    assert "Sources:" not in answer


def test_nothing_found_names_the_agents_that_have_to_do_with_it() -> None:
    answer = answer_of(consult(MODEL, "how do I sync the guestbook app?", Library()))
    assert "- **Argocd**: Argo CD applications" in answer
    assert "Pagerduty" not in answer


def test_documents_that_have_nothing_to_do_with_the_question_are_not_quoted() -> None:
    answer = answer_of(consult(MODEL, "how do zebras migrate in Kenya?", Library(PERFORMANCE, FORMS)))
    assert answer.startswith("I found nothing in the knowledge base about “how do zebras migrate in Kenya”.")
    assert "Sources:" not in answer


def test_a_passage_that_is_only_near_is_named_as_such() -> None:
    answer = answer_of(consult(MODEL, "what does the ownership file say?", Library(CONFIGURATION, README)))
    assert answer.startswith("No passage that I found clearly answers")
    assert sources_of(answer)


def test_what_is_spoken_of_is_not_taken_for_a_definition() -> None:
    answer = answer_of(consult(MODEL, "what is Argo CD?", Library(f"{WORKFLOWS} > Built-in workflows")))
    assert answer.startswith("No passage that I found says what Argo CD is. These mention it:\n\n")
    assert sources_of(answer) == [WORKFLOWS]


def test_a_document_that_only_quotes_the_question_does_not_answer_it() -> None:
    quoting = document(
        "start.md",
        '# Start\n\nTry also "how do I run ArgoCD remotely?", which is answered here.\n\n'
        '```bash\nchat "How do I run ArgoCD remotely?"\n```\n',
    )
    library = Library("start.md", f"{README} > Where agents run", more=[quoting])
    answer = answer_of(consult(MODEL, "how do I run ArgoCD remotely?", library))
    assert ".venv/bin/platform-engineer agent argocd --port 8001" in answer
    assert sources_of(answer) == [README]


def test_a_failing_knowledge_base_is_named_with_the_reason() -> None:
    library = Library(problem="knowledge.db cannot be read: the disk is full. Make room.")
    messages = consult(MODEL, "what is a workflow?", library)
    assert names_of(messages) == [["search"]]
    assert answer_of(messages) == (
        "The knowledge base could not be searched: knowledge.db cannot be read: the disk is full. Make room."
    )


def test_a_document_that_cannot_be_read_leaves_its_snippet() -> None:
    search = json.loads(Library(f"{CONFIGURATION} > Storage").search("where is DATA_DIR"))
    messages: list[BaseMessage] = [HumanMessage("what does DATA_DIR mean?")]
    model = MODEL.bind_tools(Library().tools())
    for content, status in ((json.dumps(search), "success"), ("The store is locked.", "error")):
        reply = model.invoke(messages)
        result = ToolMessage(content, tool_call_id=str(reply.tool_calls[0]["id"]), status=status)
        messages += [reply, result]
    answer = str(model.invoke(messages).text)
    assert "Directory for the files of the product." in answer
    assert "“Configuration” could not be read: The store is locked." in answer
    assert sources_of(answer) == [CONFIGURATION]


def test_a_question_in_two_parts_is_answered_in_two_parts_with_all_sources() -> None:
    library = Library("runbooks/rollback.md", more=[RUNBOOK])
    question = "what does the runbook say about rollbacks, and which argocd apps are out of sync?"
    messages = consult(MODEL, question, library)
    assert names_of(messages) == [["write_todos"], ["search", "task"], ["fetch_document"]]
    ((_, plan),) = calls_of(messages, "write_todos")
    assert [(step["content"], step["agent"]) for step in plan["steps"]] == [
        ("Search the knowledge base for what the runbook says about rollbacks", None),
        ("Which argocd apps are out of sync", "argocd"),
        ("Combine the results", None),
    ]
    planning, searching, reading, _ = texts_of(messages)
    assert planning == (
        "I'll search the knowledge base for what the runbook says about rollbacks, "
        "ask Argocd which argocd apps are out of sync, then put the results together."
    )
    assert searching == "I'll search the knowledge base for what the runbook says about rollbacks."
    assert reading == "I'll read “Rollback runbook”."
    answer = answer_of(messages)
    knowledge, argocd = answer.split("### Argocd")
    assert knowledge.startswith("### Knowledge base\n\nFrom “Rollback runbook” [1]:\n\nRoll back when a release")
    assert "| guestbook |" in argocd
    assert argocd.endswith("Sources:\n\n1. [Rollback runbook](https://wiki.example.com/rollback)")


def test_an_agent_comes_first_where_it_is_asked_first() -> None:
    library = Library("runbooks/rollback.md", more=[RUNBOOK])
    messages = consult(MODEL, "who is on call, and how do I roll back a release?", library)
    ((_, plan),) = calls_of(messages, "write_todos")
    assert [step["agent"] for step in plan["steps"]] == ["pagerduty", None, None]
    answer = answer_of(messages)
    assert answer.index("### Pagerduty") < answer.index("### Knowledge base") < answer.index("Sources:")
    assert "argocd app rollback guestbook 41" in answer


def test_two_questions_are_searched_for_in_one_turn_and_share_their_sources() -> None:
    library = Library(f"{WORKFLOWS} > Write your own workflow", f"{FORMS} > What is asked")
    messages = consult(MODEL, "what is a workflow, and what is an approval?", library)
    assert names_of(messages) == [["search", "search"], ["fetch_document", "fetch_document"]]
    answer = answer_of(messages)
    assert "### Knowledge base: what is a workflow\n\nA workflow is a declared self-service procedure" in answer
    assert "### Knowledge base: what is an approval\n\nAn approval is a form with `action_requests`" in answer
    assert answer.count("Sources:") == 1
    assert sources_of(answer) == [WORKFLOWS, FORMS]


@pytest.mark.parametrize(
    ("follow_up", "query"),
    [
        ("and how do I stop it?", "how do I stop ArgoCD"),
        ("what about jira?", "how do I run jira remotely"),
        ("tell me more", "how do I run ArgoCD remotely"),
        ("what is a workflow?", "what is a workflow"),
    ],
)
def test_a_follow_up_is_asked_so_that_it_stands_on_its_own(follow_up: str, query: str) -> None:
    library = Library(f"{README} > Where agents run")
    history = consult(MODEL, "how do I run ArgoCD remotely?", library)
    messages = consult(MODEL, follow_up, library, history)
    assert calls_of(messages[len(history) :], "search") == [("search", {"query": query})]


def test_a_question_about_documents_is_not_what_a_later_request_refers_to() -> None:
    library = Library(f"{README} > Where agents run")
    history = consult(MODEL, "show the guestbook app", library)
    history = consult(MODEL, "how do I run ArgoCD remotely?", library, history)
    messages = consult(MODEL, "sync it", library, history)
    ((_, delegated),) = calls_of(messages[len(history) :], "task")
    assert delegated["description"].startswith("sync guestbook")


def test_a_thing_that_was_talked_about_is_meant_by_a_question_of_how() -> None:
    history = consult(MODEL, "show the payments-api app", Library())
    messages = consult(MODEL, "how do I fix it?", Library(), history)
    assert calls_of(messages[len(history) :]) == [("search", {"query": "how do I fix payments-api"})]


@pytest.mark.parametrize("capped", [["fetch_document"], ["search", "fetch_document"]])
def test_at_a_cap_it_answers_from_what_is_there(capped: list[str]) -> None:
    texts = {
        "search": "[Search already done] You have reached the maximum allowed number of search calls (5).",
        "fetch_document": "[Document already retrieved] You have reached the maximum allowed number of calls (10).",
    }
    library = Library(f"{CONFIGURATION} > Storage")
    messages = consult(MODEL, "what does DATA_DIR mean?", library, results={name: texts[name] for name in capped})
    answer = answer_of(messages)
    assert "already" not in answer
    if "search" in capped:
        assert answer.startswith("The searches of the knowledge base for one question were used up")
    else:
        assert "Directory for the files of the product." in answer
        assert sources_of(answer) == [CONFIGURATION]


def test_a_document_that_is_cut_is_quoted_in_whole_sentences() -> None:
    text = "# Long\n\n" + "Filler about nothing in particular. " * 400 + "\n"
    library = Library("long.md", more=[document("long.md", text.replace("Filler", "The frobnicator hums. Filler", 1))])
    answer = answer_of(consult(MODEL, "what does the frobnicator do?", library))
    assert "The frobnicator hums." in answer
    assert "truncated" not in answer
    assert len(answer) < 1000


def test_results_that_break_off_anywhere_give_what_can_be_read() -> None:
    whole = Library(f"{DEPLOY} > Placement", f"{CONFIGURATION} > Placement").search("DISTRIBUTED_AGENTS")
    first_text = whole.index('"snippet"')
    second_result = whole.index(f'{{"document_id":"docs:{CONFIGURATION}"')
    second_text = whole.index('"snippet"', second_result)
    for length in (*range(0, len(whole), 37), len(whole) - len("]}")):
        messages = consult(
            MODEL,
            "what does DISTRIBUTED_AGENTS do?",
            Library(),
            results={
                "search": f"{whole[:length]}[Output truncated]",
                "fetch_document": "[Document already retrieved] Do NOT call fetch_document again.",
            },
        )
        answer = answer_of(messages)
        assert "[Output truncated]" not in answer, length
        assert '"snippet"' not in answer, length
        if length < first_text:
            assert answer.startswith("I found nothing"), length
        if second_result < length < second_text:
            assert sources_of(answer) == [DEPLOY], length
        if second_result < length:
            assert "`DISTRIBUTED_AGENTS` lists the agents that run remotely" in answer, length
        if whole.index("Every other", second_text) < length:
            assert sources_of(answer) == [CONFIGURATION, DEPLOY], length
            assert "Agents that run remotely: comma-separated names" in answer, length


def last_turn(
    messages: list[BaseMessage], instruction: str = "Write the answer now from what you have gathered."
) -> str:
    reply = MODEL.invoke([*messages, HumanMessage(instruction)])
    assert reply.tool_calls == []
    return str(reply.text)


def test_the_last_turn_without_tools_answers_with_sources() -> None:
    library = Library(f"{README} > Where agents run", f"{DEPLOY} > One agent remotely")
    messages = consult(MODEL, "how do I run ArgoCD remotely?", library)[:-1]
    answer = last_turn(messages)
    assert ".venv/bin/platform-engineer agent argocd --port 8001" in answer
    assert sources_of(answer)[0] == README
    assert answer.split("\n\n_Answered")[0] == answer_of(consult(MODEL, "how do I run ArgoCD remotely?", library))


def test_the_last_turn_can_come_before_anything_was_read() -> None:
    library = Library(f"{DEPLOY} > Placement")
    searched = consult(MODEL, "what does DISTRIBUTED_AGENTS do?", library)[:3]
    answer = last_turn(searched)
    assert "`DISTRIBUTED_AGENTS` lists the agents that run remotely" in answer
    assert sources_of(answer) == [DEPLOY]


def test_the_last_turn_tells_which_search_was_not_made() -> None:
    question = "what does the runbook say about rollbacks, and which argocd apps are out of sync?"
    planned = consult(MODEL, question, Library("runbooks/rollback.md", more=[RUNBOOK]))[:3]
    assert last_turn(planned).startswith(
        "Not done: Search the knowledge base for what the runbook says about rollbacks; "
        "Which argocd apps are out of sync."
    )


def test_documents_that_another_model_read_without_a_search_answer_the_question() -> None:
    page = Library().fetch_document(f"docs:{DEPLOY}")
    calls = [{"name": "fetch_document", "args": {"document_id": f"docs:{DEPLOY}"}, "id": f"c{n}"} for n in range(3)]
    messages: list[BaseMessage] = [HumanMessage("how does authentication work?")]
    for call in calls:
        messages += [AIMessage("", tool_calls=[call]), ToolMessage(page, tool_call_id=str(call["id"]))]
    answer = last_turn(messages)
    assert "start only with a key or an OAuth2 issuer" in answer
    assert sources_of(answer) == [DEPLOY]


def test_repeated_searches_are_answered_once() -> None:
    found = Library(f"{DEPLOY} > Authentication").search("authentication")
    messages: list[BaseMessage] = [HumanMessage("how does authentication work?")]
    for number in range(7):
        call = {"name": "search", "args": {"query": "authentication", "limit": 20}, "id": f"c{number}"}
        result = found if number < 5 else "[Search already done] Do NOT call search again."
        messages += [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=f"c{number}")]
    answer = last_turn(messages)
    assert answer.count("every path except `/healthz`") == 1
    assert sources_of(answer) == [DEPLOY]


def test_without_a_tool_to_read_documents_there_is_no_knowledge_base() -> None:
    tools = [item for item in Library().tools() if item.name != "fetch_document"]
    reply = MODEL.bind_tools(tools).invoke([HumanMessage("how do I run ArgoCD remotely?")])
    assert calls_of([reply])[0][0] == "write_todos"


def test_datasources_are_listed_when_they_are_asked_for() -> None:
    messages = consult(MODEL, "which datasources are there?", Library())
    assert names_of(messages) == [["list_datasources"]]


ODD = ["| a ", "```\n", "# a\n", "- a\n", "a. ", "`", "[a](b) ", "|\n", '{"a":', "the docs ", "in the docs of ", "…"]


@pytest.mark.parametrize("piece", ODD)
def test_odd_documents_and_questions_are_read_quickly(piece: str) -> None:
    started = time.process_time()
    library = Library("odd.md", more=[document("odd.md", piece * (10_000 // len(piece)))])
    for question in (f"what is {piece}", f"how do I {piece * 200}", f"what does {piece * 1000} do?", "what does a do?"):
        answer = answer_of(consult(MODEL, question, library))
        assert answer
    assert time.process_time() - started < 5


def runbook(name: str, subject: str, steps: int = 3) -> Document:
    listed = "\n".join(
        f"{number}. Step {number} of {subject}:\n\n   ```bash\n   {name}-ctl step-{number} --careful\n   ```\n"
        for number in range(1, steps + 1)
    )
    return document(
        f"runbooks/{name}.md",
        f"# Restart {subject}\n\nUse this when {subject} does not answer.\n\n## Procedure\n\n{listed}\n"
        f"## Undo\n\nRestore the backup of {subject}.\n",
    )


@pytest.mark.parametrize(
    "question",
    [
        "how do I restart Redis?",
        "what are the steps to restart Redis?",
        "is there a runbook for Redis?",
        "what should I do when Redis does not answer?",
    ],
)
def test_a_how_to_is_answered_from_one_document_whole_and_in_order(question: str) -> None:
    """Whatever else was found, and whichever part of each document."""
    books = [runbook("postgres", "PostgreSQL", 7), runbook("redis", "Redis", 7), runbook("kafka", "Kafka", 7)]
    places = [f"{book.path} > {book.title} > Procedure" for book in books]
    answer = answer_of(consult(MODEL, question, Library(*places, more=books)))
    commands = re.findall(r"\w+-ctl step-\d", answer)
    assert commands == [f"redis-ctl step-{number}" for number in range(1, 8)]
    assert [f"{number}. Step {number} of Redis:" in answer for number in range(1, 8)] == [True] * 7
    assert answer.count("```") == 14
    assert sources_of(answer) == ["runbooks/redis.md"]


def test_a_procedure_that_is_too_long_is_cut_between_steps_and_says_where_the_rest_is() -> None:
    book = runbook("redis", "Redis", 60)
    answer = answer_of(
        consult(MODEL, "how do I restart Redis?", Library(f"{book.path} > {book.title} > Procedure", more=[book]))
    )
    commands = re.findall(r"redis-ctl step-(\d+)", answer)
    assert commands == [str(number) for number in range(1, len(commands) + 1)]
    assert answer.count("```") == 2 * len(commands)
    assert f"see [1] for the rest, from “Step {len(commands) + 1} of Redis" in answer.replace(
        f"“{len(commands) + 1}. ", "“"
    )
    assert len(answer) < 3000


def test_what_a_procedure_does_not_mention_is_said() -> None:
    book = runbook("redis", "Redis")
    answer = answer_of(
        consult(MODEL, "how do I restart Redis when it does not answer on Fridays?", Library(book.path, more=[book]))
    )
    assert "which does not mention “Fridays”" in answer


def test_a_procedure_of_something_else_is_not_given_as_the_answer() -> None:
    book = runbook("redis", "Redis")
    answer = answer_of(consult(MODEL, "how do I restart Elasticsearch?", Library(book.path, more=[book])))
    assert answer.startswith(("No passage that I found clearly answers", "I found nothing"))
