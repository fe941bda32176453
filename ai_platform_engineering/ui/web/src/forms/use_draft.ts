// The draft of a form while its card is shown: read once, stored shortly after each change.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { Form } from "../events";
import type { Turn } from "../store";
import { draftStorage, readDraft, removeDraft, writeDraft, type Draft } from "./drafts";

const DELAY = 300;

export interface DraftHandle {
  draft: Draft;
  update: (change: Partial<Draft>) => void;
}

export function useDraft(turn: Turn, form: Form): DraftHandle {
  const draft = useSignal<Draft | null>(null);
  const current = draft.value ?? readDraft(draftStorage(), form.form_id);
  const pending = useRef<number | undefined>(undefined);
  const store = () => {
    if (pending.current === undefined || draft.peek() === null) return;
    window.clearTimeout(pending.current);
    pending.current = undefined;
    writeDraft(draftStorage(), form.form_id, draft.peek() ?? current);
  };
  useEffect(() => {
    draft.value = current;
    window.addEventListener("pagehide", store);
    return () => {
      window.removeEventListener("pagehide", store);
      store();
      const isOpen = turn.run.peek().forms.some((open) => open.form_id === form.form_id);
      if (!isOpen) removeDraft(draftStorage(), form.form_id);
    };
  }, []);
  const update = (change: Partial<Draft>) => {
    draft.value = { ...(draft.peek() ?? current), ...change };
    window.clearTimeout(pending.current);
    pending.current = window.setTimeout(store, DELAY);
  };
  return { draft: current, update };
}
