from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langgraph.types import Interrupt

from ai_platform_engineering.approvals.edited_call import edited_arguments_of, with_notes
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.graphs.approval_policy import ApprovalRequired, CallRefused, Verdict
from tests.approvals.conversations import SCHEMA, Backend, Conversation, agent, supervisor
from tests.approvals.tools import grant_for

DROP = ("drop", {"name": "web", "revision": 3})


def asked(waiting: Interrupt) -> dict[str, Any]:
    [request] = waiting.value["action_requests"]
    return dict(request)


def alone(backend: Backend, *rounds: Any, **options: Any) -> Conversation:
    tools = [backend.tool("alone", "drop"), backend.tool("alone", "drop_all"), backend.tool("alone", "list", "reads")]
    return Conversation(agent("alone", tools, *rounds, **options))


class TestDecisions:
    async def test_nothing_runs_before_it_is_approved_and_exactly_once_after(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        assert backend.done == []
        assert (asked(waiting)["tool"], asked(waiting)["args"]) == ("drop", {"name": "web", "revision": 3})
        assert waiting.value["input_description"].startswith('Alone wants to call drop with name="web", revision=3.')
        assert "form_id" not in waiting.value
        assert json.loads(json.dumps(waiting.value)) == waiting.value

        assert await conversation.answer(waiting, Approved()) == []
        assert backend.done == [("alone", "drop", {"name": "web", "revision": 3})]
        [result] = await conversation.results()
        assert (result.content, result.status) == ("drop done", "success")
        assert not (await conversation.state()).get("approvals")

    async def test_edited_arguments_are_those_that_run_and_the_model_sees_them(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        assert await conversation.answer(waiting, Approved({"revision": 4})) == []
        assert backend.done == [("alone", "drop", {"name": "web", "revision": 4})]
        [result] = await conversation.results()
        assert (result.content, result.status) == ("drop done", "success")
        [shown] = with_notes([result])
        assert shown.content == 'A person changed the arguments to {"name": "web", "revision": 4}.\ndrop done'

    async def test_an_edit_that_changes_nothing_is_an_approval(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        await conversation.answer(waiting, Approved({"name": "web"}))
        [result] = await conversation.results()
        assert result.content == "drop done"

    async def test_what_was_hidden_in_the_form_reaches_the_tool_whole(self) -> None:
        backend = Backend()
        args = {"name": "web", "password": "hunter2", "text": "t" * 9_000}
        conversation = alone(backend, [("drop", args)])
        [waiting] = await conversation.ask()
        assert "hunter2" not in json.dumps(waiting.value)
        await conversation.answer(waiting, Approved({**asked(waiting)["args"], "name": "shop"}))
        assert backend.done == [("alone", "drop", {**args, "name": "shop"})]
        [result] = await conversation.results()
        [shown] = with_notes([result])
        assert "hunter2" not in str(shown.content)
        assert "9000 characters" in str(shown.content)

    async def test_a_hidden_value_changed_in_part_runs_nothing(self) -> None:
        backend = Backend()
        conversation = alone(backend, [("drop", {"name": "web", "password": "hunter2"})])
        [waiting] = await conversation.ask()
        assert await conversation.answer(waiting, Approved({"password": "***3"})) == []
        assert backend.done == []
        [result] = await conversation.results()
        assert "shown only in part" in str(result.content)

    @pytest.mark.parametrize(
        ("answer", "content", "reason"),
        [
            (
                Rejected("not on a\nFriday"),
                "A person rejected this call: not on a\nFriday",
                "rejected by a person: not on a\nFriday",
            ),
            (Rejected(), "A person rejected this call.", "rejected by a person"),
            (Dismissed("later"), "A person rejected this call: later", "rejected by a person: later"),
            (Dismissed("  "), "A person rejected this call.", "rejected by a person"),
        ],
    )
    async def test_a_rejection_runs_nothing_and_the_model_sees_why(
        self, answer: Answer, content: str, reason: str
    ) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        assert await conversation.answer(waiting, answer) == []
        assert backend.done == []
        [result] = await conversation.results()
        assert (result.content, result.status, result.artifact) == (content, "error", {"reason": reason})

    @pytest.mark.parametrize(
        "value",
        [
            None,
            "yes",
            True,
            {},
            [],
            {"decisions": []},
            {"decisions": [{"type": "Approve"}]},
            {"decisions": [{"type": "edit"}]},
            {"values": {"decision": "approve"}},
        ],
    )
    async def test_what_is_not_understood_is_no_approval(self, value: Any) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        assert await conversation.answer_raw(waiting, value) == []
        assert backend.done == []
        [result] = await conversation.results()
        assert result.status == "error"
        assert "not understood" in str(result.content)

    async def test_submitted_values_are_no_approval(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        await conversation.answer(waiting, Submitted({"decision": "approve"}))
        assert backend.done == []


class TestRefusals:
    @staticmethod
    def judge(_tool: BaseTool, args: Mapping[str, Any]) -> Verdict:
        return CallRefused("web is in production") if args.get("name") == "web" else ApprovalRequired("destructive")

    async def test_a_call_that_is_not_allowed_runs_nothing_and_opens_no_form(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP], judge=self.judge)
        assert await conversation.ask() == []
        assert backend.done == []
        [result] = await conversation.results()
        assert (result.name, result.status, result.artifact) == ("drop", "error", {"reason": "web is in production"})
        assert result.content == "drop was not called: web is in production."

    async def test_an_edit_to_a_call_that_is_not_allowed_runs_nothing(self) -> None:
        backend = Backend()
        conversation = alone(backend, [("drop", {"name": "shop"})], judge=self.judge)
        [waiting] = await conversation.ask()
        assert await conversation.answer(waiting, Approved({"name": "web"})) == []
        assert backend.done == []
        [result] = await conversation.results()
        assert result.content == "drop was not called: web is in production."


class TestWhatPasses:
    async def test_tools_without_approval_and_tools_that_do_not_exist(self) -> None:
        backend = Backend()
        conversation = alone(backend, [("list", {"name": "web"}), ("nosuch", {})])
        assert await conversation.ask() == []
        assert backend.done == [("alone", "list", {"name": "web"})]
        assert [result.status for result in await conversation.results()] == ["success", "error"]

    async def test_errors_and_long_results_are_what_they_are_without_a_gate(self) -> None:
        backend = Backend()
        conversation = alone(backend, [("drop", {"name": "broken"}), ("drop", {"name": "x"})])
        broken, long = await conversation.ask()
        await conversation.answer(broken, Approved(remember=True))
        await conversation.answer(long, Approved({"name": "long"}, remember=True))
        failed, cut = await conversation.results()
        assert (failed.status, failed.content) == ("error", "It is broken.")
        assert str(cut.content).startswith("llll")
        assert edited_arguments_of(cut) == {"name": "long"}
        assert "Output truncated at character 1000 of 5000" in str(cut.content)
        state = await conversation.state()
        assert [len(text) for text in state["long_results"].values()] == [5_000]
        assert [grant["arguments"] for grant in state["approvals"]] == [{"name": "broken"}]
        assert [done[2]["name"] for done in backend.done] == ["broken", "long"]


class TestSeveralAtOnce:
    async def test_each_waits_by_itself_and_runs_once(self) -> None:
        backend = Backend()
        calls = [("drop", {"name": name}) for name in "abc"]
        conversation = alone(backend, [("list", {"name": "x"}), *calls])
        waiting = await conversation.ask()
        assert [asked(one)["args"]["name"] for one in waiting] == ["a", "b", "c"]
        assert [done[1] for done in backend.done] == ["list"]
        left = await conversation.answer(waiting[2], Approved())
        assert [one.id for one in left] == [waiting[0].id, waiting[1].id]
        assert [one.value for one in left] == [waiting[0].value, waiting[1].value]
        left = await conversation.answer(waiting[0], Rejected("no"))
        assert [one.id for one in left] == [waiting[1].id]
        assert await conversation.answer(waiting[1], Approved()) == []
        assert [(tool, arguments["name"]) for _, tool, arguments in backend.done] == [
            ("list", "x"),
            ("drop", "c"),
            ("drop", "b"),
        ]
        assert [result.status for result in await conversation.results()] == ["success", "error", "success", "success"]

    async def test_agents_side_by_side(self) -> None:
        backend = Backend()
        agents = {
            name: agent(name, [backend.tool(name, "drop")], [("drop", {"name": name})]) for name in ("argocd", "jira")
        }
        conversation = Conversation(supervisor(agents, ["argocd", "jira"]))
        waiting = await conversation.ask()
        assert [asked(one)["agent"] for one in waiting] == ["argocd", "jira"]
        [left] = await conversation.answer(waiting[1], Approved(remember=True))
        assert left.id == waiting[0].id
        assert await conversation.answer(left, Approved(remember=True)) == []
        assert [done[0] for done in backend.done] == ["jira", "argocd"]
        assert sorted(grant["agent"] for grant in (await conversation.state())["approvals"]) == ["argocd", "jira"]


class TestGrants:
    async def test_which_argument_leads_is_what_the_schema_says_and_not_the_call(self) -> None:
        backend = Backend()
        conversation = alone(backend, [("drop", {"revision": 1, "name": "web"})])
        [waiting] = await conversation.ask()
        assert asked(waiting)["remember"] == {"name": "web"}

    async def test_one_covers_the_same_leading_argument_and_nothing_else(self) -> None:
        backend = Backend()
        rounds = [
            [("drop", {"name": "web", "revision": 1})],
            [("drop", {"name": "web", "revision": 2, "force": True})],
            [("drop", {"name": "shop", "revision": 1})],
            [("drop_all", {"name": "web"})],
        ]
        conversation = alone(backend, *rounds)
        [waiting] = await conversation.ask()
        assert asked(waiting)["remember"] == {"name": "web"}
        [waiting] = await conversation.answer(waiting, Approved(remember=True))
        assert [done[2]["revision"] for done in backend.done] == [1, 2]
        assert asked(waiting)["args"] == {"name": "shop", "revision": 1}
        [waiting] = await conversation.answer(waiting, Approved())
        assert asked(waiting)["tool"] == "drop_all"
        assert await conversation.answer(waiting, Rejected()) == []
        assert (await conversation.state())["approvals"] == [grant_for("alone", "drop", {"name": "web"}, SCHEMA)]

    async def test_a_call_that_was_changed_is_approved_alone(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP], [DROP])
        [waiting] = await conversation.ask()
        [waiting] = await conversation.answer(waiting, Approved({"revision": 7}, remember=True))
        assert asked(waiting)["args"] == DROP[1]
        assert [done[2] for done in backend.done] == [{**DROP[1], "revision": 7}]

    async def test_it_lasts_for_the_conversation_and_no_longer(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        await conversation.answer(waiting, Approved(remember=True))
        assert await conversation.ask() == []
        assert len(backend.done) == 2
        assert len(await Conversation(conversation.graph, 2).ask()) == 1
        assert len(backend.done) == 2

    async def test_the_supervisor_remembers_it_for_the_agent_and_for_no_other(self) -> None:
        backend = Backend()
        agents = {name: agent(name, [backend.tool(name, "drop")], [DROP]) for name in ("argocd", "jira")}
        conversation = Conversation(supervisor(agents, ["argocd"], ["argocd"], ["jira"]))
        [waiting] = await conversation.ask()
        [waiting] = await conversation.answer(waiting, Approved(remember=True))
        assert [done[0] for done in backend.done] == ["argocd", "argocd"]
        assert asked(waiting)["agent"] == "jira"
        assert await conversation.answer(waiting, Rejected()) == []
        [waiting] = await conversation.ask()
        assert asked(waiting)["agent"] == "jira"
        assert len(backend.done) == 4
        assert [grant["agent"] for grant in (await conversation.state())["approvals"]] == ["argocd"]

    async def test_one_that_comes_with_the_request_counts(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        conversation.approvals = (grant_for("alone", "drop", DROP[1], SCHEMA),)
        assert await conversation.ask() == []
        assert len(backend.done) == 1
        conversation = alone(backend, [DROP])
        conversation.approvals = (grant_for("other", "drop", DROP[1], SCHEMA), {}, {"agent": "alone", "tool": "drop"})
        assert len(await conversation.ask()) == 1

    async def test_a_rejection_grants_nothing(self) -> None:
        backend = Backend()
        conversation = alone(backend, [DROP])
        [waiting] = await conversation.ask()
        await conversation.answer_raw(waiting, {"decisions": [{"type": "reject", "remember": True}]})
        assert len(await conversation.ask()) == 1
        assert backend.done == []
