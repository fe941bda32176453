// Values of the knowledge base as people read them.

import { clean } from "../markdown/clean_text";

const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

const AGES = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How long ago a time was: `3 days ago`. */
export function age(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return AGES.format(Math.trunc(seconds / length), unit);
}

export interface SnippetPart {
  text: string;
  matched: boolean;
}

/** The parts of a snippet, without its empty lines; the words that matched are between pairs of asterisks. */
export function partsOf(snippet: string): SnippetPart[] {
  return clean(snippet)
    .replace(/\n\s*\n/g, "\n")
    .split("**")
    .map((text, index) => ({ text, matched: index % 2 === 1 }))
    .filter((part) => part.text !== "");
}
