// One question and its run: what was done, forms, and the answer.

import { useSignal } from "@preact/signals";

import { CopyButton } from "../clipboard";
import { DeveloperView } from "../developer/DeveloperView";
import { Decisions } from "../forms/Decisions";
import { FormCard } from "../forms/FormCard";
import { EditIcon, RetryIcon } from "../icons";
import { clean } from "../markdown/clean_text";
import { Markdown } from "../markdown/Markdown";
import type { Store, Turn } from "../store";
import { TEXTS } from "../texts";
import type { RunView } from "../view";
import { Feedback } from "./Feedback";
import { RunDetails } from "./RunDetails";
import { answerOf, isRunning } from "./turns";

interface Props {
  store: Store;
  turn: Turn;
  edit: (question: string) => void;
}

export function TurnView({ store, turn, edit }: Props) {
  const run = turn.run.value;
  return (
    <article class="turn" aria-busy={isRunning(turn)}>
      <Question turn={turn} edit={edit} />
      <Progress turn={turn} />
      <RunDetails turn={turn} />
      <Decisions turn={turn} />
      {run.forms.map((form) => (
        <FormCard key={form.form_id} store={store} turn={turn} form={form} />
      ))}
      <Answer turn={turn} run={run} />
      <Ending run={run} />
      <Actions store={store} turn={turn} run={run} />
    </article>
  );
}

function Question({ turn, edit }: { turn: Turn; edit: (question: string) => void }) {
  return (
    <div class="question">
      <h2 class="visually-hidden">{TEXTS.chat.you}</h2>
      <p class="question-text">{clean(turn.question)}</p>
      <button
        type="button"
        class="button plain small question-edit"
        aria-label={TEXTS.chat.edit}
        title={TEXTS.chat.edit}
        onClick={() => edit(turn.question)}
      >
        <EditIcon />
      </button>
    </div>
  );
}

function Progress({ turn }: { turn: Turn }) {
  const state = turn.state.value;
  const problem = turn.problem.value;
  return (
    <div role="status">
      {state === "sending" && <p class="soft">{TEXTS.chat.sending}</p>}
      {state === "submitted" && <p class="soft">{TEXTS.chat.queued}</p>}
      {state === "not-sent" && <p class="problem">{TEXTS.chat.notSent} {problem}</p>}
      {state !== "not-sent" && problem && <p class="problem">{problem}</p>}
      {turn.connection.value === "lost" && <p class="soft">{TEXTS.chat.lost}</p>}
    </div>
  );
}

export function Answer({ turn, run }: { turn: Turn; run: RunView }) {
  const answer = answerOf(run);
  if (!answer) return null;
  return (
    <section class="answer" aria-label={TEXTS.chat.answer}>
      <Markdown text={answer.text} streaming={!answer.ended && isRunning(turn)} />
    </section>
  );
}

export function Ending({ run }: { run: RunView }) {
  const ending = run.ending;
  if (ending?.event === "failed") {
    return (
      <div class="card outcome bad" role="alert">
        <p>{clean(ending.message) || TEXTS.run.failed}</p>
        {ending.partial && (
          <>
            <h3>{TEXTS.run.partial}</h3>
            <Markdown text={ending.partial} />
          </>
        )}
      </div>
    );
  }
  if (ending?.event === "canceled") {
    return <p class="card outcome">{TEXTS.run.canceled(clean(ending.by ?? "user"))} {clean(ending.message ?? "")}</p>;
  }
  if (ending?.event === "final_result" && (ending.limit || ending.budget_warning)) {
    return (
      <>
        {ending.limit && <p class="card outcome">{TEXTS.run.limit(ending.limit)}</p>}
        {ending.budget_warning && (
          <p class="card outcome" role="status">
            {clean(ending.budget_warning)}
          </p>
        )}
      </>
    );
  }
  return null;
}

function Actions({ store, turn, run }: { store: Store; turn: Turn; run: RunView }) {
  const developer = useSignal(false);
  if (isRunning(turn)) return null;
  const answer = answerOf(run);
  return (
    <>
      <div class="turn-actions">
        {answer && <CopyButton text={answer.text} />}
        {run.forms.length === 0 && (
          <button type="button" class="button plain small" onClick={() => void store.retry(turn)}>
            <RetryIcon /> {TEXTS.chat.retry}
          </button>
        )}
        {answer && run.ending?.event === "final_result" && <Feedback store={store} turn={turn} />}
        <button
          type="button"
          class="button plain small"
          aria-expanded={developer.value}
          onClick={() => (developer.value = !developer.value)}
        >
          {"{ }"} <span class="visually-hidden">{TEXTS.developer.title}</span>
        </button>
      </div>
      {developer.value && <DeveloperView turn={turn} />}
    </>
  );
}
