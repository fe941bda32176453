"""Settings of the knowledge base and the skill catalog."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from ai_platform_engineering.settings.fields import (
    EmbeddingsProvider,
    Flag,
    OptionalAddress,
    OptionalDirectory,
    OptionalPostgresAddress,
    OptionalSecret,
    SettingsGroup,
    lower,
    setting,
)


class KnowledgeSettings(SettingsGroup):
    enable_rag: Flag = setting("Knowledge base", "Gives the supervisor the knowledge base and its search tools.", True)
    rag_server_url: OptionalAddress = setting(
        "Knowledge base",
        "MCP URL of a separate knowledge base server (`platform-engineer rag serve`), for example "
        "`http://127.0.0.1:8010/mcp`.",
        shown_default="the knowledge base runs inside the supervisor",
    )
    rag_database_url: OptionalPostgresAddress = setting(
        "Knowledge base",
        "Postgres database with pgvector that stores the knowledge base, for example "
        "`postgresql://user:password@host/database`.",
        shown_default="a file in `DATA_DIR`",
    )
    rag_product_docs: Flag = setting(
        "Knowledge base", "Adds the documentation of this product to the knowledge base.", True
    )
    search_max_calls: int = setting(
        "Knowledge base", "Maximum number of searches in the knowledge base per question.", 5, ge=1
    )
    fetch_document_max_calls: int = setting(
        "Knowledge base", "Maximum number of documents, and of web pages, that are read per question.", 10, ge=1
    )
    rag_max_search_results: int = setting("Knowledge base", "Maximum number of results of one search.", 3, ge=1, le=50)
    rag_max_output_chars: int = setting(
        "Knowledge base",
        "Maximum number of characters of a search result, document or page that go to the model. The rest is cut off.",
        10_000,
        ge=100,
    )
    embeddings_provider: Annotated[EmbeddingsProvider | None, BeforeValidator(lower)] = setting(
        "Knowledge base",
        "Provider of the embedding model that turns text into vectors. `offline` needs no key and no network. "
        "`none` switches vector search off and leaves keyword search.",
        shown_default="`offline` if the `embeddings` extra is installed, else `none`",
    )
    embeddings_model_name: str | None = setting(
        "Knowledge base", "Name of the embedding model at the provider.", shown_default="depends on the provider"
    )
    rerank_url: OptionalAddress = setting(
        "Knowledge base",
        "URL of a rerank API that sorts search results by relevance. Cohere, Jina, vLLM and others provide one.",
    )
    rerank_model_name: str | None = setting("Knowledge base", "Model name for `RERANK_URL`.")
    rerank_api_key: OptionalSecret = setting("Knowledge base", "API key for `RERANK_URL`.")
    fetch_url_allow_private: Flag = setting(
        "Knowledge base", "Allows reading web pages from private and loopback addresses.", False
    )
    fetch_url_allowed_hosts: str = setting(
        "Knowledge base",
        "Hosts from which web pages may be read, comma-separated. `*.example.com` allows all subdomains of "
        "`example.com`.",
        "",
        shown_default="every public host",
    )
    fetch_url_max_bytes: int = setting(
        "Knowledge base", "Largest web page, or document sent to the REST API, in bytes.", 5_000_000, ge=1024
    )
    fetch_url_timeout: float = setting("Knowledge base", "Seconds for reading one web page.", 20.0, gt=0, le=600)
    ingest_max_pages: int = setting(
        "Knowledge base", "Maximum number of pages that one `ingest` of a site reads.", 1000, ge=1
    )
    ingest_pages_per_second: float = setting(
        "Knowledge base", "Maximum number of pages per second that `ingest` reads from one site.", 5.0, gt=0, le=1000
    )

    enable_skills: Flag = setting("Skills", "Lets the supervisor and its agents use skills.", True)
    skills_dir: OptionalDirectory = setting(
        "Skills", "Directory with one folder per skill. Changes take effect while the server runs."
    )
    skills_git: str = setting(
        "Skills",
        "Git repositories with skills, comma-separated: `url@commit` or `url@branch`. `platform-engineer skills "
        "refresh` reads a branch again. `#folder` at the end selects the skills below one folder.",
        "",
    )
    skills_git_token: OptionalSecret = setting("Skills", "Access token for the https:// URLs in `SKILLS_GIT`.")
    skills_database_url: OptionalPostgresAddress = setting(
        "Skills",
        "Postgres database for the skills that are created through the API.",
        shown_default="a file in `DATA_DIR`",
    )
    skills_admins: str = setting(
        "Skills",
        "Subjects (`sub`) of access tokens that may change the skills of other owners, comma-separated. Callers "
        "with the shared key always may.",
        "",
    )
    skills_crawl_hosts: str = setting(
        "Skills",
        "Hosts whose Git repositories `POST /skill-hubs/crawl` may read, comma-separated.",
        "github.com,gitlab.com",
    )
    skills_prompt_max_chars: int = setting(
        "Skills",
        "Maximum number of characters of the skill list in the prompt. If the list is longer, the model searches "
        "for skills.",
        7_000,
        ge=200,
        le=7_000,
    )
