// One turn of a recording, drawn by the components of the chat.

import { computed, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import type { TaskState } from "../api";
import { RunDetails } from "../chat/RunDetails";
import { Answer, Ending } from "../chat/TurnView";
import type { Form } from "../events";
import { clean } from "../markdown/clean_text";
import type { Turn } from "../store";
import { TEXTS } from "../texts";
import { EMPTY_RUN, type RunView } from "../view";
import type { Player } from "./player";

export function ReplayedTurn({ player, place }: { player: Player; place: number }) {
  const turn = useMemo(() => turnOf(player, place), [player, place]);
  const played = player.turns.value[place];
  if (played === undefined) return null;
  return (
    <article class="turn">
      {played.question && (
        <div class="question">
          <h3 class="visually-hidden">{TEXTS.chat.you}</h3>
          <p class="question-text">{clean(played.question)}</p>
        </div>
      )}
      <RunDetails turn={turn} />
      {played.replies.map((reply, number) => (
        <div key={number} class="question">
          <h3 class="visually-hidden">{TEXTS.chat.you}</h3>
          <p class="question-text">{clean(reply)}</p>
        </div>
      ))}
      {played.run.forms.map((form) => (
        <RecordedForm key={form.form_id} form={form} />
      ))}
      <Answer turn={turn} run={played.run} />
      <Ending run={played.run} />
    </article>
  );
}

/** The question to a person. It belongs to a run that is over, so it cannot be answered. */
function RecordedForm({ form }: { form: Form }) {
  return (
    <section class="card" aria-label={form.title}>
      <h3>{clean(form.title)}</h3>
      {form.description && <p>{clean(form.description)}</p>}
      <ul>
        {(form.fields ?? []).map((field) => (
          <li key={field.field_name}>
            <code>{clean(field.field_name)}</code> {clean(field.field_description ?? "")}
          </li>
        ))}
      </ul>
    </section>
  );
}

function turnOf(player: Player, place: number): Turn {
  const run = computed(() => player.turns.value[place]?.run ?? EMPTY_RUN);
  return {
    key: `replayed ${place}`,
    taskId: signal(null),
    question: player.turns.value[place]?.question ?? "",
    askedAt: 0,
    state: computed(() => stateOf(run.value)),
    run,
    decisions: signal([]),
    connection: signal("idle"),
    problem: signal(null),
    events: [],
  };
}

function stateOf(run: RunView): TaskState {
  switch (run.ending?.event) {
    case undefined:
      return "working";
    case "final_result":
      return "completed";
    case "input_required":
      return "input-required";
    case "failed":
      return "failed";
    case "canceled":
      return "canceled";
  }
}
