"""The bot shows the supervisor who it is, and who asks. Where that fails, people get plain words; the log says why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from ai_platform_engineering.integrations.slack_bot import words
from tests.integrations.slack_bot.installation import GOOD, Service, installation, supervisor_with
from tests.oauth_issuer import TestIssuer, issuing

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "correct-horse-battery-staple"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def issuer() -> AsyncIterator[TestIssuer]:
    async with issuing(TestIssuer(client="slack-bot", secret="client-secret-of-the-bot")) as issuer:
        yield issuer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(issuer: TestIssuer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A supervisor that accepts the key or a token of the issuer."""
    service = supervisor_with(
        tmp_path_factory.mktemp("supervisor"),
        A2A_AUTH_SHARED_KEY=KEY,
        USER_SIGNING_KEY=KEY,
        A2A_OAUTH_ISSUER=issuer.url,
        A2A_OAUTH_AUDIENCE="platform",
        ENABLE_RAG="false",
        OFFLINE_MODEL_DELAY="0",
    )
    async with service.running():
        yield service


def addresses(*services: Service) -> tuple[str, ...]:
    return tuple(service.url.removeprefix("http://") for service in services)


async def test_with_the_key_it_is_let_in_and_vouches_for_people(guarded: Service, tmp_path: Path) -> None:
    async with installation(tmp_path, guarded.url, A2A_AUTH_SHARED_KEY=KEY) as acme:
        ada = acme.person()
        thread = await acme.asks(ada, "show argocd version")
        answer = await thread.answered()
        assert "v3.1.8" in answer.text
        assert f"is asked by slack:{acme.slack.directory.team_id}/{ada.id}" in guarded.output
        await ada.presses(answer, GOOD)
        await thread.until(lambda: any("Thank you, noted." in one for one in thread.ephemeral_messages))
        await ada.commands(thread.channel, "/platform", "workflows")
        await thread.until(lambda: "create_github_repo" in ada.reads(thread.channel))
        acme.check(KEY, also={"the supervisor": guarded.output}, addresses=addresses(guarded))


async def test_with_a_wrong_key_people_get_plain_words_and_the_log_says_what_to_set(
    guarded: Service, tmp_path: Path
) -> None:
    async with installation(tmp_path, guarded.url, A2A_AUTH_SHARED_KEY="wrong-key-of-the-bot") as acme:
        thread = await acme.asks(acme.person(), "show argocd version")
        await thread.until(lambda: words.MISCONFIGURED in thread.said and thread.is_at_rest())
        assert thread.answers == []
        (line,) = [line for line in acme.bot.output.splitlines() if "WARNING" in line]
        assert "A2A_AUTH_SHARED_KEY" in line
        acme.check(KEY, "wrong-key-of-the-bot", also={"the supervisor": guarded.output}, addresses=addresses(guarded))


@pytest.mark.parametrize("secret", ["client-secret-of-the-bot", "a-wrong-secret"])
async def test_with_a_token_of_the_issuer(guarded: Service, issuer: TestIssuer, tmp_path: Path, secret: str) -> None:
    grant = {
        "A2A_OAUTH_GRANT_URL": f"{issuer.url}/token",
        "A2A_OAUTH_CLIENT_ID": "slack-bot",
        "A2A_OAUTH_CLIENT_SECRET": secret,
        "A2A_OAUTH_AUDIENCE": "platform",
        "USER_SIGNING_KEY": KEY,
    }
    async with installation(tmp_path, guarded.url, **grant) as acme:
        ada = acme.person()
        thread = await acme.asks(ada, "show argocd version")
        if secret == issuer.secret:
            assert "v3.1.8" in (await thread.answered()).text
            assert f"is asked by slack:{acme.slack.directory.team_id}/{ada.id}" in guarded.output
        else:
            await thread.until(lambda: words.MISCONFIGURED in thread.said and thread.is_at_rest())
            assert "A2A_OAUTH_CLIENT" in acme.bot.output
        acme.check(KEY, secret, also={"the supervisor": guarded.output}, addresses=addresses(guarded))
