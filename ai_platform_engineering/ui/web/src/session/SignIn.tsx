// The sign-in, with OpenID Connect or with a key. The key goes to the supervisor once and is not kept in the page.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { startOfSignIn } from "../api";
import { addressOf } from "../app/addresses";
import type { Store } from "../store";
import { TEXTS } from "../texts";

/** The parameter of the page's address in which the supervisor says why a sign-in failed. */
const FAILURE = "sign_in";

export function SignIn({ store }: { store: Store }) {
  const session = store.session.value;
  const methods = session?.methods ?? [];
  return (
    <main class="sign-in">
      <h1>{TEXTS.title}</h1>
      {methods.includes("openid") && <ProviderSignIn store={store} />}
      {methods.includes("openid") && methods.includes("key") && (
        <details class="sign-in-other">
          <summary>{TEXTS.session.withKey}</summary>
          <KeyForm store={store} isAlone={false} />
        </details>
      )}
      {methods.length === 1 && methods[0] === "key" && <KeyForm store={store} isAlone />}
      {methods.length === 0 && <NotAvailable canLogin={session?.terminal !== null} />}
    </main>
  );
}

function ProviderSignIn({ store }: { store: Store }) {
  const failure = useSignal(failureAt(location.href));
  // Removed from the address, so that a reload does not repeat the sentence.
  useEffect(() => history.replaceState(null, "", withoutFailure(location.href)), []);
  return (
    <div class="sign-in-form">
      <p class="soft">{TEXTS.session.providerHint}</p>
      <p class="problem" role="alert">{failure.value}</p>
      <a class="button primary" href={startOfSignIn(addressOf(store.place.value))}>{TEXTS.session.signIn}</a>
    </div>
  );
}

/** The sentence for the failure in an address of the page. */
function failureAt(address: string): string | null {
  const code = new URL(address).searchParams.get(FAILURE);
  if (code === null) return null;
  const failures: Record<string, string> = TEXTS.session.failures;
  return (Object.hasOwn(failures, code) ? failures[code] : undefined) ?? TEXTS.session.failures.refused;
}

function withoutFailure(address: string): string {
  const url = new URL(address);
  url.searchParams.delete(FAILURE);
  return url.href;
}

function KeyForm({ store, isAlone }: { store: Store; isAlone: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  const isBusy = useSignal(false);
  const problem = useSignal<string | null>(null);
  useEffect(() => {
    if (isAlone) field.current?.focus();
  }, []);

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
      <p class="soft" id="sign-in-hint">{isAlone ? TEXTS.session.hint : TEXTS.session.otherHint}</p>
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
      <button type="submit" class={isAlone ? "button primary" : "button"} aria-disabled={isBusy.value}>
        {isBusy.value ? TEXTS.session.signingIn : isAlone ? TEXTS.session.signIn : TEXTS.session.signInWithKey}
      </button>
    </form>
  );
}

function NotAvailable({ canLogin }: { canLogin: boolean }) {
  const address = addressOfPage();
  return (
    <>
      <p>{TEXTS.session.notAvailable}</p>
      <p>
        {canLogin ? TEXTS.session.terminalLogin : TEXTS.session.terminal}{" "}
        <code>{canLogin ? TEXTS.session.loginCommand(address) : TEXTS.session.command(address)}</code>
      </p>
    </>
  );
}

/** The address of the supervisor, as the page was called. */
function addressOfPage(): string {
  return new URL(".", location.href).href;
}
