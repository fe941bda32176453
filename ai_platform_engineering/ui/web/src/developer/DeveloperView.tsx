// The raw events of a run: filtered by kind and text, each with its JSON, and as a recording to download.

import { useSignal } from "@preact/signals";

import type { RecordedLine } from "../events";
import type { Turn } from "../store";
import { TEXTS } from "../texts";
import { EventRow } from "./EventRow";
import { matches, type EventFilter } from "./filter";
import { EVENT_KINDS, encodeRecording } from "./lines";

/** So many events are listed at once: more would take long to lay out. */
const LISTED = 200;

export function DeveloperView({ turn }: { turn: Turn }) {
  const filter = useSignal<EventFilter>({ kind: null, text: "" });
  const listed = useSignal(LISTED);
  // `events` grows in place: the run is the signal of a change.
  void turn.run.value;
  const events = turn.events;
  const present = new Set(events.map((line) => line.event));
  const found = events.filter((line) => matches(line, filter.value));
  const change = (changed: Partial<EventFilter>) => {
    filter.value = { ...filter.value, ...changed };
    listed.value = LISTED;
  };
  return (
    <section class="developer card" aria-label={TEXTS.developer.title}>
      <div class="developer-filter">
        <label>
          <span class="visually-hidden">{TEXTS.developer.kind}</span>
          <select
            class="input"
            value={filter.value.kind ?? ""}
            onChange={({ currentTarget }) => change({ kind: EVENT_KINDS.find((kind) => kind === currentTarget.value) ?? null })}
          >
            <option value="">{TEXTS.developer.allKinds}</option>
            {EVENT_KINDS.filter((kind) => present.has(kind)).map((kind) => (
              <option key={kind} value={kind}>{kind}</option>
            ))}
          </select>
        </label>
        <label class="developer-text">
          <span class="visually-hidden">{TEXTS.developer.text}</span>
          <input
            type="search"
            class="input"
            placeholder={TEXTS.developer.text}
            value={filter.value.text}
            onInput={({ currentTarget }) => change({ text: currentTarget.value })}
          />
        </label>
        <button type="button" class="button" onClick={() => download(turn)}>{TEXTS.developer.download}</button>
      </div>
      <p class="soft" role="status">{TEXTS.developer.count(found.length, events.length)}</p>
      <ol class="events">
        {found.slice(0, listed.value).map((line, place) => (
          <EventRow key={keyOf(line, place)} line={line} />
        ))}
      </ol>
      {found.length > listed.value && (
        <button type="button" class="button small" onClick={() => (listed.value += LISTED)}>
          {TEXTS.developer.more(found.length - listed.value)}
        </button>
      )}
    </section>
  );
}

function keyOf(line: RecordedLine, place: number): string {
  return line.seq === undefined ? `place ${place}` : `${line.seq} ${line.event} ${place}`;
}

function download(turn: Turn): void {
  const recording = encodeRecording(turn.question, turn.events, turn.decisions.value);
  const address = URL.createObjectURL(new Blob([recording], { type: "application/jsonl" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = `${turn.taskId.value ?? "run"}.jsonl`;
  link.click();
  URL.revokeObjectURL(address);
}
