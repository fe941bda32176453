"""Untrusted Markdown as HTML: raw HTML and images are disabled, and links are external only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from ai_platform_engineering.integrations.slack_bot.preview.mrkdwn import LINKED
from ai_platform_engineering.integrations.slack_bot.preview.page.html import Html
from ai_platform_engineering.utils.characters import clean

_MENTION: Final = re.compile(r"<@(\w+)>")


class _SlackMarkdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - overrides MarkdownIt
        return url.lower().startswith(LINKED)


def _mention(state: StateInline, silent: bool) -> bool:
    found = _MENTION.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        state.push("strong_open", "strong", 1)
        state.push("text", "", 0).content = f"@{state.env['names'].get(found[1], found[1])}"
        state.push("strong_close", "strong", -1)
    state.pos = found.end()
    return True


def _link_open(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    tokens[at].attrSet("rel", "noopener noreferrer nofollow")
    tokens[at].attrSet("target", "_blank")
    return renderer.renderToken(tokens, at, options, env)


def _table_open(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    return '<div class="wide" tabindex="0">' + renderer.renderToken(tokens, at, options, env)


def _table_close(renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, env: EnvType) -> str:
    return renderer.renderToken(tokens, at, options, env) + "</div>"


def _parser() -> MarkdownIt:
    # The browser would fetch an image from any address in the text.
    parser = (
        _SlackMarkdown("commonmark", {"html": False, "breaks": True})
        .enable(["table", "strikethrough"])
        .disable("image")
    )
    parser.inline.ruler.before("autolink", "mention", _mention)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser


_PARSER: Final = _parser()


def markdown(text: str, names: Mapping[str, str]) -> Html:
    """Render `text`. `names` are the names of people by id."""
    return Html(_PARSER.render(clean(text), {"names": names}))
