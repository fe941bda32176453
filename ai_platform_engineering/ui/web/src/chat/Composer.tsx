// The field for a message. Enter sends, Shift+Enter begins a new line, Escape stops the run.

import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { SendIcon, StopIcon } from "../icons";
import type { Store, Turn } from "../store";
import { TEXTS } from "../texts";
import { isRunning } from "./turns";

export function Composer({ store, draft }: { store: Store; draft: Signal<string> }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const running = (store.current.value?.turns.value ?? []).filter(isRunning);
  useEffect(() => {
    if (draft.value) field.current?.focus();
  }, [draft.value === ""]);
  const send = () => {
    const question = draft.value.trim();
    if (!question) return;
    draft.value = "";
    void store.ask(question);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && running.length > 0) {
      stopAll(store, running);
    }
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={field}
        class="input composer-field"
        rows={2}
        aria-label={TEXTS.chat.composer}
        placeholder={TEXTS.chat.placeholder}
        value={draft.value}
        onInput={(event) => (draft.value = event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {running.length > 0 && (
        <button type="button" class="button" onClick={() => stopAll(store, running)}>
          <StopIcon /> {TEXTS.chat.stop}
        </button>
      )}
      <button class="button primary" disabled={!draft.value.trim()}>
        <SendIcon /> {TEXTS.chat.send}
      </button>
    </form>
  );
}

function stopAll(store: Store, turns: readonly Turn[]): void {
  for (const turn of turns) void store.stop(turn);
}
