// The Markdown lexer, with limits: hostile text must not cost more than its length.

import { Lexer, type Links, type MarkedToken, type Token, type TokensList } from "marked";

/** Quotes in lists in quotes, deeper than this, are text. */
const MAX_DEPTH = 12;
/** A longer paragraph, item or cell is text: the time that emphasis and links take grows faster than their length. */
const MAX_INLINE = 3000;

/** The tokens of paragraphs, items and cells, by their text. */
export type InlineTokens = ReadonlyMap<string, readonly Token[]>;

export interface Lexed {
  tokens: readonly MarkedToken[];
  links: Links;
  /** For the next call with the same blocks and more text: what has not changed is not parsed again. */
  inline: InlineTokens;
}

/** The blocks of `text`. `links` are the link definitions that are known from other parts of the text. */
export function lex(text: string, links: Links, inline: InlineTokens = new Map()): Lexed {
  const lexer = new BoundedLexer(inline);
  Object.assign(lexer.tokens.links, links);
  const tokens = lexer.lex(text);
  return { tokens: tokens as Token[] as MarkedToken[], links: tokens.links, inline: lexer.used };
}

class BoundedLexer extends Lexer {
  readonly used = new Map<string, readonly Token[]>();
  private depth = 0;

  constructor(private readonly known: InlineTokens) {
    super({ gfm: true });
  }

  override blockTokens(src: string, tokens: Token[] = [], lastParagraphClipped?: boolean): TokensList {
    return this.nested(src, tokens, () => super.blockTokens(src, tokens as TokensList, lastParagraphClipped));
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (src.length > MAX_INLINE) return asText(src, tokens);
    const isWhole = this.depth === 0 && tokens.length === 0;
    const known = isWhole ? this.known.get(src) : undefined;
    if (known) tokens.push(...known);
    else this.nested(src, tokens, () => super.inlineTokens(src, tokens));
    if (isWhole) this.used.set(src, [...tokens]);
    return tokens;
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
