// Text of any length, as it is written.

import { clean } from "./clean_text";

const PIECE = 10_000;

/** The browser lays out only the pieces that are in view. */
export function PlainText({ text }: { text: string }) {
  return (
    <div class="plain-text">
      {piecesOf(clean(text)).map((piece, index) => (
        <div key={index} class="plain-piece" dir="auto">{piece}</div>
      ))}
    </div>
  );
}

/** Pieces end at a line where possible. */
export function piecesOf(text: string): string[] {
  const pieces = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + PIECE);
    const line = text.lastIndexOf("\n", end - 1) + 1;
    if (end < text.length && line > start) end = line;
    else if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    pieces.push(text.slice(start, end));
    start = end;
  }
  return pieces;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
