// The Markdown lexer, with limits: hostile text must not cost more than its length.

import { Lexer, type Links, type MarkedToken, type Token, type TokensList } from "marked";

/** Quotes in lists in quotes, deeper than this, are text. */
const MAX_DEPTH = 12;
/** A longer paragraph, item or cell is text: the time that emphasis and links take grows faster than their length. */
const MAX_INLINE = 3000;

export interface Lexed {
  tokens: readonly MarkedToken[];
  links: Links;
}

/** The blocks of `text`. `links` are the link definitions that are known from other parts of the text. */
export function lex(text: string, links: Links): Lexed {
  const lexer = new BoundedLexer({ gfm: true });
  Object.assign(lexer.tokens.links, links);
  const tokens = lexer.lex(text);
  return { tokens: tokens as Token[] as MarkedToken[], links: tokens.links };
}

class BoundedLexer extends Lexer {
  private depth = 0;

  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): TokensList {
    return this.nested(src, tokens, () => super.blockTokens(src, tokens as TokensList, lastParagraphClipped));
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (src.length > MAX_INLINE) return asText(src, tokens);
    return this.nested(src, tokens, () => super.inlineTokens(src, tokens));
  }

  private nested(src: string, tokens: Token[], lexed: () => Token[]): TokensList {
    if (this.depth >= MAX_DEPTH) return asText(src, tokens);
    this.depth += 1;
    try {
      return lexed() as TokensList;
    } finally {
      this.depth -= 1;
    }
  }
}

function asText(src: string, tokens: Token[]): TokensList {
  tokens.push({ type: "text", raw: src, text: src });
  return tokens as TokensList;
}
