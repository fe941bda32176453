// The sign-in of a supervisor with a key. The key goes to the supervisor once and is not kept in the page.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { Store } from "../store";
import { TEXTS } from "../texts";

export function SignIn({ store }: { store: Store }) {
  return (
    <main class="sign-in">
      <h1>{TEXTS.title}</h1>
      {store.session.value?.method === "key" ? <KeyForm store={store} /> : <NotAvailable />}
    </main>
  );
}

function KeyForm({ store }: { store: Store }) {
  const field = useRef<HTMLInputElement>(null);
  const isBusy = useSignal(false);
  const problem = useSignal<string | null>(null);
  useEffect(() => field.current?.focus(), []);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    const input = field.current;
    if (!input || isBusy.value) return;
    const key = input.value.trim();
    isBusy.value = true;
    // Cleared first: screen readers announce the same sentence again.
    problem.value = null;
    problem.value = key ? await store.signIn(key) : TEXTS.session.missing;
    isBusy.value = false;
    if (problem.value !== null) {
      input.focus();
      input.select();
    }
  }

  return (
    <form class="sign-in-form" onSubmit={submit} noValidate>
      <p class="soft" id="sign-in-hint">{TEXTS.session.hint}</p>
      <label for="sign-in-key">{TEXTS.session.key}</label>
      <input
        ref={field}
        id="sign-in-key"
        class="input"
        name="key"
        type="password"
        autocomplete="current-password"
        autocapitalize="off"
        spellcheck={false}
        required
        aria-invalid={problem.value !== null}
        aria-describedby="sign-in-hint sign-in-problem"
      />
      <p class="problem" id="sign-in-problem" role="alert">{problem.value}</p>
      <button type="submit" class="button primary" aria-disabled={isBusy.value}>
        {isBusy.value ? TEXTS.session.signingIn : TEXTS.session.signIn}
      </button>
    </form>
  );
}

function NotAvailable() {
  return (
    <>
      <p>{TEXTS.session.notAvailable}</p>
      <p>
        {TEXTS.session.terminal} <code>{TEXTS.session.command(addressOfPage())}</code>
      </p>
    </>
  );
}

/** The address of the supervisor, as the page was called. */
function addressOfPage(): string {
  return new URL(".", location.href).href;
}
