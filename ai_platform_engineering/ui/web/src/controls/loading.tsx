// Data that a view loads while it is shown, and what the view shows until then.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { RetryIcon } from "../icons";
import { RequestError } from "../state/http";
import { TEXTS } from "../texts";

export interface Loaded<Value> {
  value: Value | null;
  /** Why the last request failed; null if it did not. */
  error: Error | null;
  loading: boolean;
  reload: () => void;
}

/** Loads at first and whenever one of `inputs` changes. The response to an outdated request is dropped. */
export function useLoaded<Value>(load: () => Promise<Value>, inputs: readonly unknown[]): Loaded<Value> {
  const state = useSignal<Omit<Loaded<Value>, "reload">>({ value: null, error: null, loading: true });
  const latest = useRef(0);
  const start = async () => {
    const number = ++latest.current;
    state.value = { ...state.value, loading: true };
    const ended = await load().then(
      (value) => ({ value, error: null }),
      (error: unknown) => ({ value: null, error: error instanceof Error ? error : new Error(String(error)) }),
    );
    if (number === latest.current) state.value = { ...ended, loading: false };
  };
  useEffect(() => {
    void start();
    return () => void latest.current++;
  }, inputs);
  return { ...state.value, reload: () => void start() };
}

/** The status of the response that an error reports; null if there was none. */
export function statusOf(error: Error | null): number | null {
  return error instanceof RequestError ? error.status : null;
}

export function LoadStatus({ loaded }: { loaded: Loaded<unknown> }) {
  return (
    <>
      <div role="status">
        {loaded.loading && loaded.value === null && <p class="soft">{TEXTS.app.loading}</p>}
      </div>
      {loaded.error && !loaded.loading && (
        <div class="card outcome bad" role="alert">
          <p>{loaded.error.message}</p>
          <button type="button" class="button small" onClick={loaded.reload}>
            <RetryIcon /> {TEXTS.views.retry}
          </button>
        </div>
      )}
    </>
  );
}
