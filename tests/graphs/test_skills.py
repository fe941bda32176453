"""Skills in a graph: what the model is offered, what it reads and finds, and commands of people."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from ai_platform_engineering.graphs.agent_graph import agent_graph
from ai_platform_engineering.graphs.skills import Skills, skills
from ai_platform_engineering.graphs.skills_offer import SkillOffers, delegated_offer
from ai_platform_engineering.identity.principal import KEY_HOLDER
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.skill import Access, Provenance, Skill, SkillContent
from ai_platform_engineering.skills_middleware.sources.source import (
    LoadedSkills,
    SkillGoneError,
    SkillSource,
    SourceUnavailableError,
)
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from tests.runs.graphs import context, settings_of

TOOLS = {"read_skill", "search_skills"}


class Shelf(SkillSource):
    """A source with these skills. One named `gone` or `unavailable` cannot be read."""

    name = "shelf"
    kind = "directory"

    def __init__(self, skills: Sequence[Skill], files: Mapping[str, str]) -> None:
        self.skills = tuple(skills)
        self.files = files
        self.is_changed = False

    async def load(self) -> LoadedSkills:
        return LoadedSkills(self.skills)

    async def changed(self) -> bool:
        return self.is_changed

    async def content(self, skill: Skill) -> SkillContent:
        if skill.name == "gone":
            raise SkillGoneError(skill.name)
        if skill.name == "unavailable":
            raise SourceUnavailableError("the disk is asleep.")
        return SkillContent("---\n", f"Do {skill.name} with $ARGUMENTS.", self.files)


def skill(name: str, **more: Any) -> Skill:
    return Skill(name, f"About {name}.", Provenance("directory"), **more)


def described(*names: str) -> list[Skill]:
    return [skill(name, digest=name) for name in names]


@dataclass
class Desk:
    catalog: SkillCatalog
    offers: SkillOffers
    shelf: Shelf
    cues: list[ModelInput] = field(default_factory=list)

    async def ask(
        self,
        question: str,
        *turns: Turn,
        commands: bool = True,
        max_chars: int = 7_000,
        ctx: RequestContext | None = None,
        tools: Sequence[BaseTool] = (),
    ) -> list[AnyMessage]:
        """The messages after the question."""
        self.cues.clear()

        def part(cue: ModelInput) -> Turn:
            self.cues.append(cue)
            return turns[cue.turn] if cue.turn < len(turns) else Turn("Done.")

        graph = agent_graph(
            settings_of(),
            ScriptedChatModel(script=part),
            tools,
            "You work.",
            name="depot",
            middleware=[Skills(self.offers, max_chars, commands=commands)],
        )
        state = await graph.ainvoke({"messages": [HumanMessage(question)]}, context=ctx or context())
        messages: list[AnyMessage] = state["messages"]
        return messages[1:]

    async def call(self, tool_name: str, **arguments: Any) -> tuple[str, str]:
        """The result of a tool, and its status."""
        _, result, _ = await self.ask("q", Turn("", [(tool_name, arguments)]), max_chars=1)
        assert isinstance(result, ToolMessage)
        return str(result.text), result.status

    @property
    def prompt(self) -> str:
        return str(self.cues[-1].messages[0].text)

    @property
    def offered(self) -> set[str]:
        return TOOLS & set(self.cues[-1].tools)


@asynccontextmanager
async def desk(
    tmp_path: Path,
    *given: Skill,
    names: Sequence[str] | None = None,
    files: Mapping[str, str] | None = None,
    **environ: str,
) -> AsyncIterator[Desk]:
    settings = settings_of(DATA_DIR=str(tmp_path), **environ)
    shelf = Shelf(given, files or {})
    catalog = SkillCatalog(settings, [shelf])
    await catalog.start()
    try:
        yield Desk(catalog, SkillOffers(catalog, settings, "depot", names), shelf)
    finally:
        await catalog.aclose()


async def test_the_model_is_offered_the_skills_that_fit_into_the_prompt(tmp_path: Path) -> None:
    async with desk(tmp_path, *described("triage", "audit")) as it:
        assert [message.text for message in await it.ask("q")] == ["Done."]
        assert it.offered == {"read_skill"}
        assert it.prompt.startswith("You work.\n\nSkills are instructions")
        assert it.prompt.endswith("\n- audit: About audit.\n- triage: About triage.")
        await it.ask("q", max_chars=100)
        assert it.offered == TOOLS
        assert "and there are 2: look for one" in it.prompt
        assert "audit" not in it.prompt


async def test_without_skills_there_is_nothing_about_them(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        await it.ask("/triage now")
        assert (it.prompt, it.offered) == ("You work.", set())
        assert "request_user_input" in it.cues[-1].tools


async def test_a_turn_begins_with_the_skills_as_they_are_then(tmp_path: Path) -> None:
    async with desk(tmp_path, *described("triage")) as it:
        it.shelf.skills = (*it.shelf.skills, *described("audit"))
        it.shelf.is_changed = True

        @tool
        def change() -> str:
            """Changes the skills during a run."""
            it.shelf.skills = tuple(described("other"))
            return "changed"

        await it.ask("q", Turn("", [("change", {})]), tools=[change])
        assert ["- audit:" in str(cue.messages[0].text) for cue in it.cues] == [True, True]


async def test_a_command_reads_the_skill_first(tmp_path: Path) -> None:
    async with desk(tmp_path, *described("triage")) as it:
        reading, result, answer = await it.ask("/triage payments")
        assert isinstance(reading, AIMessage)
        [call] = reading.tool_calls
        assert (reading.text, call["name"]) == ("", "read_skill")
        assert call["args"] == {"name": "triage", "arguments": "payments"}
        assert str(call["id"]).startswith("call_")
        assert len(str(call["id"])) == 29
        assert "Do triage with payments." in str(result.text)
        assert (answer.text, len(it.cues)) == ("Done.", 1)
        again, *_ = await it.ask("/triage")
        assert isinstance(again, AIMessage)
        assert again.tool_calls[0]["args"] == {"name": "triage"}
        assert again.tool_calls[0]["id"] != call["id"]


async def test_a_mistyped_command_is_answered_without_the_model(tmp_path: Path) -> None:
    async with desk(tmp_path, *described("triage")) as it:
        [answer] = await it.ask("/triagee payments")
        assert answer.text == "There is no skill named `triagee`. Did you mean `/triage`?"
        assert str(answer.id).startswith("skills-")
        assert it.cues == []
        [other] = await it.ask("/triagee payments")
        assert other.id != answer.id


@pytest.mark.parametrize(
    ("commands", "options"),
    [(False, {}), (True, {"delegated": True}), (True, {"silent_when_unsure": True})],
    ids=["off", "a supervisor's words", "people among themselves"],
)
async def test_only_a_person_who_asks_can_command(tmp_path: Path, commands: bool, options: dict[str, bool]) -> None:
    async with desk(tmp_path, *described("triage")) as it:
        [answer] = await it.ask("/triage payments", commands=commands, ctx=context(**options))
        assert (answer.text, len(it.cues)) == ("Done.", 1)


async def test_a_command_is_one_only_as_the_question(tmp_path: Path) -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "/triage"

    async with desk(tmp_path, *described("triage")) as it:
        messages = await it.ask("q", Turn("", [("look", {})]), tools=[look])
        assert [message.type for message in messages] == ["ai", "tool", "ai"]


async def test_skills_and_their_files_are_read(tmp_path: Path) -> None:
    files = {"notes/a.md": "Note A.", "b.md": "Note B."}
    async with desk(tmp_path, *described("triage"), files=files) as it:
        text, status = await it.call("read_skill", name="/Triage", arguments="payments")
        assert status == "success"
        assert text.startswith("Skill triage (source: directory, visibility: global, files: b.md, notes/a.md)\n")
        assert "\nDo triage with payments.\n" in text
        document, _ = await it.call("read_skill", name="triage", file="SKILL.md")
        assert "\nDo triage with $ARGUMENTS.\n" in document
        note, _ = await it.call("read_skill", name="triage", file="notes/a.md")
        assert note.startswith("File notes/a.md of the skill triage (")
        assert "\nNote A.\n" in note


async def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    files = {"notes/a.md": "", "b.md": ""}
    async with desk(tmp_path, *described("triage", "gone", "unavailable"), files=files) as it:
        assert await it.call("read_skill", name="tirage") == (
            "There is no skill 'tirage'. Similar names: triage.",
            "error",
        )
        assert await it.call("read_skill", name="xyz") == (
            "There is no skill 'xyz'. Skills: gone, triage, unavailable.",
            "error",
        )
        assert await it.call("read_skill", name="gone") == (
            "The skill 'gone' has just been changed or removed. Read it again.",
            "error",
        )
        assert await it.call("read_skill", name="unavailable") == (
            "The skill 'unavailable' cannot be read now: the disk is asleep.",
            "error",
        )
        assert await it.call("read_skill", name="triage", file="a.md") == (
            "The skill triage has no file 'a.md'. Similar paths: b.md, notes/a.md.",
            "error",
        )
        assert await it.call("read_skill", name="triage", file="x") == (
            "The skill triage has no file 'x'. Files: b.md, notes/a.md.",
            "error",
        )


async def test_skills_are_found_by_words_ten_at_most(tmp_path: Path) -> None:
    async with desk(tmp_path, *described("triage", *(f"audit-{number}" for number in range(12)))) as it:
        assert await it.call("search_skills", query="triage") == ("- triage: About triage.", "success")
        found, _ = await it.call("search_skills", query="audit")
        assert len(found.splitlines()) == 10
        assert await it.call("search_skills", query="zebra") == (
            "None of the 13 skills matches. Try other words.",
            "success",
        )


async def test_the_tools_only_read_and_say_what_they_are_for(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        read, search = Skills(it.offers, 1).tools
        assert (read.metadata, search.metadata) == ({"read_only": True}, {"read_only": True})
        assert read.description == "Read the instructions of a skill, or one of its files."
        assert search.description == "Skills that fit some words, with their descriptions."
        assert set(read.tool_call_schema.model_json_schema()["properties"]) == {"name", "file", "arguments"}
        assert set(search.tool_call_schema.model_json_schema()["properties"]) == {"query"}


async def test_there_is_a_middleware_only_where_skills_are_enabled(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        assert [*skills(it.offers, settings_of(ENABLE_SKILLS="false"), commands=True)] == []
        [enabled] = skills(it.offers, settings_of(SKILLS_PROMPT_MAX_CHARS="1000"), commands=True)
        assert isinstance(enabled, Skills)


async def test_a_run_may_read_what_its_caller_sees(tmp_path: Path) -> None:
    own = skill("own", access=Access("personal", "key"))
    async with desk(tmp_path, *described("triage"), own) as it:
        assert [*it.offers.offer(None).view.skills] == ["triage"]
        assert [*it.offers.offer(context()).view.skills] == ["triage"]
        assert [*it.offers.offer(context(caller=KEY_HOLDER)).view.skills] == ["own", "triage"]


async def test_what_is_handed_over_is_everything_that_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = described("gone", "unavailable", "triage", "audit")
    async with desk(tmp_path, *given, names=["triage", "gone", "unavailable"], files={"a.md": "A"}) as it:
        handed = await it.offers.for_delegation(context())
    assert handed == (
        {
            "name": "triage",
            "description": "About triage.",
            "instructions": "Do triage with $ARGUMENTS.",
            "files": {"a.md": "A"},
            "source": "directory",
            "visibility": "global",
        },
    )
    assert "depot runs without the skill unavailable: the disk is asleep." in caplog.messages
    offer = delegated_offer([*handed, {"name": "half"}, {**handed[0], "name": "other"}])
    assert [*offer.view.skills] == ["other", "triage"]
    taken = offer.view.skills["triage"]
    assert (taken.description, taken.files, taken.provenance.kind) == ("About triage.", ("a.md",), "directory")
    content = await offer.content(taken)
    assert (content.document, content.instructions) == ("Do triage with $ARGUMENTS.",) * 2
    assert content.files == {"a.md": "A"}
    assert offer.view.search("other") == [offer.view.skills["other"]]


async def test_skills_are_handed_over_as_they_are_then(tmp_path: Path) -> None:
    async with desk(tmp_path, *described("triage"), names=["triage", "audit"]) as it:
        it.shelf.skills = tuple(described("audit"))
        it.shelf.is_changed = True
        assert [each["name"] for each in await it.offers.for_delegation(context())] == ["audit"]


async def test_the_size_of_what_an_agent_gets_is_limited_exactly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = [skill(name, size=size) for name, size in (("big", 200), ("half", 128), ("rest", 128), ("more", 1))]
    names = ["half", "big", "rest", "more", "half"]
    async with desk(tmp_path, *given, names=names, MAX_REQUEST_BYTES="1024") as it:
        for _ in range(2):
            assert [*it.offers.offer(context()).view.skills] == ["half", "rest"]
        assert [record.getMessage() for record in caplog.records] == [
            f"depot: the skill {name} is left out, because the skills of an agent may have at most 256 bytes in total"
            for name in ("big", "more")
        ]
