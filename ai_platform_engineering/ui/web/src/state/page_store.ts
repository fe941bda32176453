// The store of the page: what a person can do, and the state that it changes.

import { computed, effect, signal, untracked, type ReadonlySignal, type Signal } from "@preact/signals";

import {
  deleteConversation,
  getAbout,
  getAgents,
  renameConversation,
  shareConversation,
  type About,
  type AgentRow,
} from "../api";
import { addressOf, placeAt } from "../app/addresses";
import { agentTitles } from "../chat/names";
import type { Form } from "../events";
import type { Conversation, FormAnswer, Notice, Place, Store, Turn } from "../store";
import { TEXTS } from "../texts";
import { A2ASupervisor } from "./a2a";
import { ConversationList } from "./conversation_list";
import { Frames } from "./frames";
import { Http, problemOf, RequestError } from "./http";
import { randomId } from "./ids";
import { mayShowOutside, Notifications, showOutside } from "./notifications";
import { OpenConversations } from "./open_conversations";
import { SessionState } from "./session_state";
import { TurnState } from "./turn";

const CONFLICT = 409;
const REFRESH_INTERVAL = 5000;
/** Milliseconds. */
const HIDDEN_LIMIT = 60_000;

/** The store of the page in this window. */
export function createStore(): Store {
  return new PageStore(window);
}

export class PageStore implements Store {
  readonly place: Signal<Place>;
  readonly about = signal<About | null>(null);
  readonly agents = signal<readonly AgentRow[] | null>(null);
  private readonly http = new Http();
  readonly online: ReadonlySignal<boolean> = this.http.online;
  private readonly sessions = new SessionState(
    this.http,
    () => this.begin(),
    () => this.forgetAll(),
  );
  readonly session = this.sessions.session;
  private readonly list = new ConversationList(this.http);
  readonly conversations = this.list.rows;
  readonly hasMore = this.list.hasMore;
  readonly search = this.list.search;
  private readonly notifications: Notifications;
  readonly notices: ReadonlySignal<readonly Notice[]>;
  private readonly open: OpenConversations;
  private pauseTimer: number | undefined;
  readonly current = computed<Conversation | null>(() => this.open.current.value);

  constructor(private readonly window: Window & typeof globalThis) {
    this.place = signal(placeAt(window.location.hash));
    this.notifications = new Notifications(
      (conversation) => this.isInView(conversation),
      (notice) => showOutside(notice, () => this.go({ view: "chat", conversation: notice.conversation })),
    );
    this.notices = this.notifications.notices;
    const environment = {
      supervisor: new A2ASupervisor(this.http, new URL(".", window.document.baseURI).href),
      frames: new Frames(),
      subject: () => this.session.value?.subject ?? null,
    };
    this.open = new OpenConversations(this.http, environment, (conversation, isRunning) => {
      if (isRunning) this.notifications.await(conversation.id);
      void this.refresh();
    });
    this.listen();
    void this.sessions.read();
  }

  go(place: Place): void {
    this.place.value = place;
    this.window.location.hash = addressOf(place);
  }

  signIn(key: string): Promise<string | null> {
    return this.sessions.signIn(key);
  }

  async signOut(): Promise<void> {
    const address = await this.sessions.signOut();
    if (address !== null) this.window.location.assign(address);
  }

  searchFor(text: string): void {
    this.list.searchFor(text);
  }

  async loadMore(): Promise<void> {
    await this.attempt("", () => this.list.loadMore());
  }

  async rename(conversation: string, name: string): Promise<void> {
    await this.attempt(conversation, async () => {
      await renameConversation(this.http, conversation, name);
      this.list.replace(conversation, (row) => ({ ...row, name }));
      this.open.renamed(conversation, name);
    });
  }

  async remove(conversation: string): Promise<void> {
    await this.attempt(conversation, async () => {
      if (!(await this.isDeleted(conversation))) return;
      this.list.remove(conversation);
      this.open.forget(conversation);
      if (this.isAt(conversation)) this.go({ view: "chat", conversation: null });
    });
  }

  async share(conversation: string, groups: readonly string[]): Promise<string | null> {
    try {
      const changed = await shareConversation(this.http, conversation, groups);
      this.open.shared(conversation, changed.groups);
      this.list.replace(conversation, (row) => ({ ...row, groups: changed.groups }));
      return null;
    } catch (error) {
      return problemOf(error);
    }
  }

  async ask(question: string, metadata?: Record<string, unknown>): Promise<void> {
    const place = this.place.value;
    const known = place.view === "chat" ? this.open.current.value : null;
    const conversation = known ?? this.open.create(randomId());
    if (known === null) this.go({ view: "chat", conversation: conversation.id });
    await conversation.ask(question, metadata);
  }

  async retry(turn: Turn): Promise<void> {
    if (!(turn instanceof TurnState)) return;
    if (turn.state.value === "not-sent") await turn.send();
    else await this.ask(turn.question, turn.message.metadata);
  }

  async stop(turn: Turn): Promise<void> {
    if (turn instanceof TurnState) await turn.stop();
  }

  async answer(turn: Turn, form: Form, answer: FormAnswer): Promise<string | null> {
    return turn instanceof TurnState ? await turn.answer(form, answer) : null;
  }

  dismiss(notice: Notice): void {
    this.notifications.dismiss(notice);
  }

  async loadAgents(): Promise<void> {
    await this.attempt("", async () => {
      this.agents.value = (await getAgents(this.http)).agents;
    });
  }

  request<Result>(method: "GET" | "POST", path: string, body?: unknown): Promise<Result> {
    return this.http.json(method, path, body);
  }

  private listen(): void {
    const { window } = this;
    window.addEventListener("hashchange", () => this.follow(placeAt(window.location.hash)));
    window.addEventListener("offline", () => (this.http.online.value = false));
    window.addEventListener("online", () => this.wake(true));
    window.document.addEventListener("visibilitychange", () => this.seen(!window.document.hidden));
    window.setInterval(() => window.document.hidden || void this.refresh(), REFRESH_INTERVAL);
    effect(() => {
      agentTitles.value = this.about.value?.agent_titles ?? {};
    });
    effect(() => {
      const place = this.place.value;
      if (place.view === "chat") untracked(() => this.open.show(place.conversation));
    });
  }

  /** A hidden page gives its connections back after a while: all tabs of a browser share a few. */
  private seen(isVisible: boolean): void {
    this.window.clearTimeout(this.pauseTimer);
    if (isVisible) {
      this.open.resume();
      this.wake(false);
    } else if (!mayShowOutside()) {
      this.pauseTimer = this.window.setTimeout(() => this.open.pause(), HIDDEN_LIMIT);
    }
  }

  private follow(place: Place): void {
    if (addressOf(place) !== addressOf(this.place.value)) this.place.value = place;
  }

  /** The person may use the supervisor. */
  private begin(): void {
    void this.refresh();
    void this.open.load();
    this.open.wake(false);
    void getAbout(this.http).then((about) => (this.about.value = about)).catch(() => {});
  }

  /** The next person must not see the conversations of this one. */
  private forgetAll(): void {
    this.go({ view: "chat", conversation: null });
    this.open.clear();
    this.list.clear();
    this.notifications.clear();
    this.about.value = null;
    this.agents.value = null;
  }

  private wake(mayBeDead: boolean): void {
    if (!this.sessions.isOpen) {
      void this.sessions.read();
      return;
    }
    this.open.wake(mayBeDead);
    void this.refresh();
  }

  /** Load the list again, and what other clients did in the current conversation. */
  private async refresh(): Promise<void> {
    if (!this.sessions.isOpen) return;
    const requestedAt = performance.now();
    try {
      const rows = await this.list.refresh();
      this.notifications.check(rows, requestedAt);
      await this.open.compare(rows, requestedAt);
    } catch {
      // The next refresh is soon; `online` says whether the supervisor can be reached.
    }
  }

  private async isDeleted(conversation: string): Promise<boolean> {
    try {
      await deleteConversation(this.http, conversation, false);
    } catch (error) {
      if (!(error instanceof RequestError && error.status === CONFLICT)) throw error;
      if (!this.window.confirm(TEXTS.conversations.confirmUnfinished)) return false;
      await deleteConversation(this.http, conversation, true);
    }
    return true;
  }

  private async attempt(conversation: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.notifications.problem(conversation, problemOf(error));
    }
  }

  private isInView(conversation: string): boolean {
    return !this.window.document.hidden && this.isAt(conversation);
  }

  private isAt(conversation: string): boolean {
    const place = this.place.value;
    return place.view === "chat" && place.conversation === conversation;
  }
}
