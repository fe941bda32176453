// Feedback on an answer: a thumb, and for a bad answer the reason.

import { useSignal } from "@preact/signals";
import { useEffect, useId, useRef } from "preact/hooks";

import { ThumbDownIcon, ThumbUpIcon } from "../icons";
import type { Store, Turn } from "../store";
import { TEXTS } from "../texts";
import { rememberedRating, sendFeedback, type Rating } from "./feedback_requests";

type Status = { kind: "idle" | "sending" | "stored" } | { kind: "failed"; sentence: string };

export function Feedback({ store, turn }: { store: Store; turn: Turn }) {
  const taskId = turn.taskId.value;
  const ending = turn.run.value.ending;
  const rating = useSignal<Rating | null>(taskId === null ? null : rememberedRating(taskId));
  const status = useSignal<Status>({ kind: rating.value === null ? "idle" : "stored" });
  const asksWhy = useSignal(false);
  if (taskId === null || ending?.event !== "final_result") return null;
  const send = async (chosen: Rating, reason: string) => {
    status.value = { kind: "sending" };
    try {
      await sendFeedback(store, { taskId, messageId: ending.answer_message_id, rating: chosen, reason });
      rating.value = chosen;
      status.value = { kind: "stored" };
      asksWhy.value = false;
    } catch (error) {
      status.value = { kind: "failed", sentence: error instanceof Error ? error.message : String(error) };
    }
  };
  const disabled = status.value.kind === "sending";
  return (
    <div class="feedback" role="group" aria-label={TEXTS.feedback.label}>
      <button
        type="button"
        class="button plain small"
        aria-label={TEXTS.feedback.up}
        title={TEXTS.feedback.up}
        aria-pressed={rating.value === "up"}
        disabled={disabled}
        onClick={() => void send("up", "")}
      >
        <ThumbUpIcon />
      </button>
      <button
        type="button"
        class="button plain small"
        aria-label={TEXTS.feedback.down}
        title={TEXTS.feedback.down}
        aria-pressed={rating.value === "down"}
        aria-expanded={asksWhy.value}
        disabled={disabled}
        onClick={() => (asksWhy.value = !asksWhy.value)}
      >
        <ThumbDownIcon />
      </button>
      <span role="status" class={status.value.kind === "failed" ? "problem" : "soft"}>
        {status.value.kind === "stored" && TEXTS.feedback.stored}
        {status.value.kind === "failed" && TEXTS.feedback.failed(status.value.sentence)}
      </span>
      {asksWhy.value && (
        <ReasonForm
          disabled={disabled}
          send={(reason) => void send("down", reason)}
          cancel={() => (asksWhy.value = false)}
        />
      )}
    </div>
  );
}

interface FormProps {
  disabled: boolean;
  send: (reason: string) => void;
  cancel: () => void;
}

function ReasonForm({ disabled, send, cancel }: FormProps) {
  const chosen = useSignal<readonly string[]>([]);
  const comment = useSignal("");
  const form = useRef<HTMLFormElement>(null);
  const id = useId();
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  const toggle = (reason: string, on: boolean) => {
    chosen.value = on ? [...chosen.value, reason] : chosen.value.filter((other) => other !== reason);
  };
  const submit = () => send([...chosen.value, comment.value.trim()].filter(Boolean).join(". "));
  return (
    <form
      ref={form}
      class="card feedback-form"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => event.key === "Escape" && cancel()}
    >
      <fieldset class="reasons">
        <legend>{TEXTS.feedback.why}</legend>
        {TEXTS.feedback.reasons.map((reason) => (
          <label key={reason}>
            <input
              type="checkbox"
              checked={chosen.value.includes(reason)}
              onChange={(event) => toggle(reason, event.currentTarget.checked)}
            />
            {reason}
          </label>
        ))}
      </fieldset>
      <label for={id}>{TEXTS.feedback.comment}</label>
      <textarea
        id={id}
        class="input"
        rows={2}
        maxLength={3000}
        value={comment.value}
        onInput={(event) => (comment.value = event.currentTarget.value)}
      />
      <div class="feedback-actions">
        <button class="button primary small" disabled={disabled}>{TEXTS.feedback.send}</button>
        <button type="button" class="button small" onClick={cancel}>{TEXTS.feedback.cancel}</button>
      </div>
    </form>
  );
}
