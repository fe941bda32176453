// A table, which scrolls sideways where it is too wide. Of a long one, the first rows.

import { useSignal } from "@preact/signals";
import type { Tokens } from "marked";

import { TEXTS } from "../texts";
import { Inline } from "./Inline";
import { PlainText } from "./PlainText";

const MAX_ROWS = 200;
const MAX_COLUMNS = 50;
/** Keys, states and names of up to this many characters stay on one line. */
const SHORT = 16;

export function Table({ token }: { token: Tokens.Table }) {
  const asText = useSignal(false);
  const rows = token.rows.slice(0, MAX_ROWS);
  const isCut = token.rows.length > MAX_ROWS || token.header.length > MAX_COLUMNS;
  if (asText.value) return <PlainText text={token.raw} />;
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="group" aria-label={TEXTS.markdown.table}>
        <table>
          <thead>
            <tr>{token.header.slice(0, MAX_COLUMNS).map((cell) => <Cell cell={cell} />)}</tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr>{row.slice(0, MAX_COLUMNS).map((cell) => <Cell cell={cell} />)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {isCut && (
        <p class="cut">
          {TEXTS.markdown.rows(rows.length, token.rows.length)}{" "}
          <button type="button" class="button small" onClick={() => (asText.value = true)}>
            {TEXTS.markdown.showAll}
          </button>
        </p>
      )}
    </>
  );
}

function Cell({ cell }: { cell: Tokens.TableCell }) {
  const alignment = cell.align ? `align-${cell.align}` : "";
  const props = { class: cell.text.length <= SHORT ? `${alignment} short` : alignment, dir: "auto" } as const;
  const content = <Inline tokens={cell.tokens} />;
  return cell.header ? <th scope="col" {...props}>{content}</th> : <td {...props}>{content}</td>;
}
