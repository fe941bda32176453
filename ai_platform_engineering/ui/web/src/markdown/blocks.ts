// Splits a growing text into blocks. A finished block is parsed once; only the last one is parsed again when text
// arrives. A long text is parsed piece by piece, so that no step takes long.

import type { Links, MarkedToken } from "marked";

import { clean, shortened } from "./clean_text";
import { type InlineTokens, lex } from "./lexer";

/** What is rendered of a text. The rest is available as plain text. */
export const MAX_LENGTH = 50_000;
/** Other blocks than code are cut here: a list or table is parsed as a whole with each piece. */
export const MAX_BLOCK = 20_000;
/** What is parsed in one step. */
const PIECE = 6_000;

export interface Block {
  /** The position in the text, which identifies the block while the text grows. */
  key: number;
  token: MarkedToken;
  /** Whether more text can still change it. */
  finished: boolean;
  /** The level of a heading in the page: a level is never skipped. */
  level: number;
}

export interface Parsed {
  finished: readonly Block[];
  /** The last block, which more text can change. */
  open: Block | null;
  /** The text of the finished blocks. */
  prefix: string;
  /** How much of the text was looked at. */
  reached: number;
  /** Whether everything that is rendered was looked at. */
  complete: boolean;
  /** Whether the text is too long to be rendered as a whole. */
  cut: boolean;
  links: Links;
  /** The link definitions that were known when the first block was parsed. */
  knownLinks: Links;
  /** Parts of the open block that were parsed. */
  inline: InlineTokens;
  /** The depths of the headings above the end of the prefix. */
  headings: readonly number[];
}

export const NOTHING_PARSED: Parsed = {
  finished: [],
  open: null,
  prefix: "",
  reached: 0,
  complete: false,
  cut: false,
  links: {},
  knownLinks: {},
  inline: new Map(),
  headings: [],
};

/** The level of the first heading in a text: headings of the page are above it. */
const FIRST_LEVEL = 3;

export function blocksOf(parsed: Parsed): readonly Block[] {
  return parsed.open === null ? parsed.finished : [...parsed.finished, parsed.open];
}

/** One step: parse the next piece of `written`. `streaming`: more text can follow. */
export function advance(before: Parsed, written: string, streaming: boolean): Parsed {
  const cutByLength = written.length > MAX_LENGTH;
  const text = clean(shortened(written, MAX_LENGTH));
  const last = text.startsWith(before.prefix) ? before : NOTHING_PARSED;
  if (last.cut || (last.complete && last.open === null && last.prefix === text)) return last;
  const reached = Math.min(text.length, Math.max(last.reached, last.prefix.length) + PIECE);
  const complete = reached === text.length;
  const isEnd = complete && !streaming && !cutByLength;
  const next = step(last, shortened(text, reached), isEnd);
  if (isEnd && hasLateLinks(next)) {
    return advance({ ...NOTHING_PARSED, links: next.links, knownLinks: next.links }, written, false);
  }
  const isTooLong = next.open !== null && next.open.token.type !== "code" && next.open.token.raw.length > MAX_BLOCK;
  if (isTooLong || (complete && cutByLength)) return closed({ ...next, reached, complete: true, cut: true });
  return { ...next, reached, complete };
}

function step(last: Parsed, text: string, isEnd: boolean): Parsed {
  const { tokens, links: found, inline } = lex(text.slice(last.prefix.length), last.links, last.inline);
  // Text that follows can change the last token, and nothing before it.
  const openIndex = isEnd ? tokens.length : tokens.findLastIndex((token) => token.type !== "space");
  const finished = [...last.finished];
  const headings = [...last.headings];
  let position = last.prefix.length;
  let open: Block | null = null;
  let openText = "";
  let prefixLength = position;
  tokens.forEach((token, index) => {
    const isFinished = index < openIndex;
    if (token.type !== "space" && token.type !== "def") {
      const block = { key: position, token, finished: isFinished, level: levelOf(token, headings) };
      if (isFinished) finished.push(block);
      else open = block;
    }
    position += token.raw.length;
    if (isFinished) prefixLength = position;
    else openText += token.raw;
    if (isFinished && token.type === "heading") enter(headings, token.depth);
  });
  const prefix = text.slice(0, prefixLength);
  const links = withoutOpen(found, openText, last.links);
  // Parts that were parsed without a link that is known now are parsed again.
  const hasNewLinks = Object.keys(found).length !== Object.keys(last.links).length;
  return { ...last, finished, open, prefix, links, inline: hasNewLinks ? new Map() : inline, headings };
}

/** A definition that is not complete yet may have half of an address. */
function withoutOpen(links: Links, openText: string, known: Links): Links {
  if (!openText.includes("]:")) return links;
  const unsure = lex(openText, {}).links;
  return Object.fromEntries(Object.entries(links).filter(([name]) => Object.hasOwn(known, name) || !Object.hasOwn(unsure, name)));
}

function levelOf(token: MarkedToken, headings: readonly number[]): number {
  if (token.type !== "heading") return 0;
  return Math.min(6, FIRST_LEVEL + headings.filter((depth) => depth < token.depth).length);
}

function enter(headings: number[], depth: number): void {
  while ((headings.at(-1) ?? 0) >= depth) headings.pop();
  headings.push(depth);
}

function closed(parsed: Parsed): Parsed {
  if (parsed.open === null) return parsed;
  return { ...parsed, finished: [...parsed.finished, { ...parsed.open, finished: true }], open: null };
}

/** Whether a block could refer to a link that was defined after it. */
function hasLateLinks(parsed: Parsed): boolean {
  return Object.keys(parsed.links).some((name) => !Object.hasOwn(parsed.knownLinks, name));
}
