"""The offline model with the real knowledge base: its MCP server in this process, the documentation that ships."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from mcp import ClientSession

from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.knowledge_bases.rag.server import make_server
from ai_platform_engineering.mcp.tool_server import ToolError
from ai_platform_engineering.offline_model import OfflineChatModel
from ai_platform_engineering.settings import Settings, load_settings
from tests.llm.offline_library import Library, cut
from tests.tool_sessions import session_with, text_of

MODEL = OfflineChatModel()

ANSWERED = [
    ("how do I run ArgoCD remotely?", "README.md", "platform-engineer agent argocd --port 8001"),
    ("what does DISTRIBUTED_AGENTS do?", "docs/", "agents that run remotely"),
    (
        "what does MCP_START_TIMEOUT mean?",
        "docs/configuration.md",
        "Seconds that the start of the supervisor or of an agent waits",
    ),
    ("what is a workflow?", "docs/workflows.md", "A workflow is a declared self-service procedure"),
    ("how do I reset the sandbox?", "docs/operate.md", "platform-engineer sandbox reset"),
    ("how do I replay a recording?", "docs/terminal.md", "platform-engineer replay run.jsonl"),
    ("where are tasks stored?", "docs/operate.md", "Every event of a task is written to `tasks.db`"),
]
UNANSWERED = ["what is agntcy slim?", "what's the weather in Paris?", "how do zebras migrate in Kenya?"]


@asynccontextmanager
async def asking(settings: Settings) -> AsyncIterator[ClientSession]:
    knowledge = KnowledgeBase(settings)
    async with aclosing(knowledge), session_with(make_server(knowledge)) as session:
        yield session


async def ask(session: ClientSession, question: str) -> str:
    messages: list[BaseMessage] = [HumanMessage(question)]
    model = MODEL.bind_tools(Library().tools())
    for _ in range(4):
        reply = model.invoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return str(reply.text)
        for call in reply.tool_calls:
            limited = {**call["args"], "limit": 3} if call["name"] == "search" else call["args"]
            try:
                content, status = text_of(await session.call_tool(call["name"], limited)), "success"
            except ToolError as error:
                content, status = str(error), "error"
            messages.append(ToolMessage(cut(content), name=call["name"], tool_call_id=call["id"], status=status))
    raise AssertionError(f"no answer to {question!r}")


@pytest.mark.long
@pytest.mark.parametrize("provider", ["offline", "none"])
async def test_the_documentation_answers_on_the_first_run(provider: str, tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path), "EMBEDDINGS_PROVIDER": provider}, None)
    async with asking(settings) as session:
        for question, path, sentence in ANSWERED:
            answer = await ask(session, question)
            assert sentence in answer, f"{question}\n\n{answer}"
            assert f"(`{path}" in answer.partition("Sources:")[2], question
        for question in UNANSWERED:
            answer = await ask(session, question)
            assert answer.startswith(f"I found nothing in the knowledge base about “{question.rstrip('?')}”."), answer


async def test_a_store_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "knowledge.db").write_text("This is no database, and long enough to be looked at as one. " * 40)
    settings = load_settings({"DATA_DIR": str(tmp_path), "EMBEDDINGS_PROVIDER": "none"}, None)
    async with asking(settings) as session:
        answer = await ask(session, "what is a workflow?")
    assert answer.startswith("The knowledge base could not be searched: ")
    assert "knowledge.db" in answer
