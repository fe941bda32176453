// One event of the developer view: a line, and its JSON when it is opened.

import { useSignal } from "@preact/signals";

import type { RecordedLine } from "../events";
import { clean, shortened } from "../markdown/clean_text";
import { TEXTS } from "../texts";
import { jsonOf, summaryOf } from "./filter";

const MAX_SUBJECT = 160;

export function EventRow({ line }: { line: RecordedLine }) {
  const open = useSignal(false);
  const { agent, subject } = summaryOf(line);
  return (
    <li class="event">
      <details onToggle={(event) => (open.value = event.currentTarget.open)}>
        <summary class="event-line">
          <span class="event-number soft">{line.seq ?? ""}</span>
          <span class="event-time soft">{line.at !== undefined && TEXTS.developer.time(line.at)}</span>
          <code class="event-kind">{line.event}</code>
          {agent && <bdi class="badge">{clean(agent)}</bdi>}
          <bdi class="event-subject soft">{clean(shortened(subject, MAX_SUBJECT))}</bdi>
        </summary>
        {open.value && <pre class="event-json" tabIndex={0}>{jsonOf(line, 2)}</pre>}
      </details>
    </li>
  );
}
