"""Slack's markup as the text that people meant."""

from __future__ import annotations

import pytest

from ai_platform_engineering.integrations.slack_bot.listeners.readable import mentions, readable


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("<@UBOT> who is on call?", "who is on call?"),
        ("Hey <@UBOT>, who is on call?", "Hey who is on call?"),
        ("<@UBOT|platform>: deploy", "deploy"),
        ("line one\n<@UBOT> line two", "line one\n line two"),
        ("ask <@U2|ben> or <@U3>", "ask @ben or @Cleo"),
        ("see <#C2|general> and <#C3>", "see #general and #C3"),
        ("<!here> <!subteam^S1|@ops> <!subteam^S2>", "@here @ops @subteam"),
        ("due <!date^1392734382^{date}|Feb 18, 2014>", "due Feb 18, 2014"),
        ("<https://example.com/a?b=1&amp;c=2>", "https://example.com/a?b=1&c=2"),
        ("<http://example.com|example.com>", "example.com"),
        ("<https://example.com/|example.com>", "example.com"),
        ("<https://example.com/x|the page>", "the page (https://example.com/x)"),
        ("<mailto:ben@example.com|ben@example.com>", "ben@example.com"),
        ("<tel:+4930123|+4930123>", "+4930123"),
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("&lt;@U2&gt; is no mention", "<@U2> is no mention"),
        ("if a < b", "if a < b"),
        ("<>", "<>"),
        ("&nbsp;&copy; stay", "&nbsp;&copy; stay"),
    ],
)
def test_tags_become_what_people_saw(raw: str, shown: str) -> None:
    assert readable(raw, without="UBOT", names={"U3": "Cleo"}) == shown


def test_mentions_are_found_by_id() -> None:
    assert mentions("<@UBOT> and <@W2|wendy>, not &lt;@U3&gt; or <#C1>") == {"UBOT", "W2"}
