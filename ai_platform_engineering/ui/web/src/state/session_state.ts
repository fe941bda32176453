// Whether the person may use the supervisor.

import { signal } from "@preact/signals";

import { getSession, signIn, signOut, type Session } from "../api";
import { TEXTS } from "../texts";
import { problemOf, RequestError, UNAUTHORIZED, type Http } from "./http";

const RETRY_DELAY = 2000;

export class SessionState {
  readonly session = signal<Session | null>(null);
  private reading: Promise<void> | null = null;

  /** `onOpen` is called when the person may use the supervisor; `onClose` when another person may be next. */
  constructor(
    private readonly http: Http,
    private readonly onOpen: () => void,
    private readonly onClose: () => void,
  ) {
    http.onUnauthorized = () => void this.read();
    http.renewToken = () => this.read();
  }

  get isOpen(): boolean {
    const session = this.session.value;
    return session !== null && (!session.required || session.signed_in);
  }

  /** Read the session again. */
  read(): Promise<void> {
    this.reading ??= this.request().finally(() => (this.reading = null));
    return this.reading;
  }

  /** Resolves to a sentence if the key was not accepted. */
  async signIn(key: string): Promise<string | null> {
    try {
      this.apply(await signIn(this.http, key));
      return null;
    } catch (error) {
      const isWrong = error instanceof RequestError && error.status === UNAUTHORIZED;
      return isWrong ? TEXTS.session.wrong : problemOf(error);
    }
  }

  /** Resolves to the page of the provider that ends the session there as well, if there is one. */
  async signOut(): Promise<string | null> {
    const answer = await signOut(this.http).catch(() => null);
    this.onClose();
    if (answer === null) await this.read();
    return answer?.logout_url ?? null;
  }

  private async request(): Promise<void> {
    try {
      this.apply(await getSession(this.http));
    } catch {
      setTimeout(() => void this.read(), RETRY_DELAY);
    }
  }

  private apply(session: Session): void {
    const wasOpen = this.isOpen;
    this.http.csrfToken = session.csrf_token;
    this.session.value = session;
    if (this.isOpen && !wasOpen) this.onOpen();
  }
}
