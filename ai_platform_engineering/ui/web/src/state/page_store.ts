// The store of the page: what a person can do, and the state that it changes.

import { computed, effect, signal, type ReadonlySignal, type Signal } from "@preact/signals";

import {
  deleteConversation,
  getAbout,
  getAgents,
  getConversation,
  getSession,
  renameConversation,
  signIn,
  signOut,
  type About,
  type AgentRow,
  type Session,
} from "../api";
import { addressOf, placeAt } from "../app/addresses";
import { agentTitles } from "../chat/names";
import type { Form } from "../events";
import type { Conversation, FormAnswer, Notice, Place, Store, Turn } from "../store";
import { A2ASupervisor } from "./a2a";
import { ConversationState } from "./conversation";
import { ConversationList } from "./conversation_list";
import { Frames } from "./frames";
import { Http, problemOf, RequestError } from "./http";
import { randomId } from "./ids";
import { TurnState, type Environment } from "./turn";

const NOT_FOUND = 404;
const CONFLICT = 409;
const OPEN_SESSION: Session = { required: false, signed_in: true, subject: null, csrf_token: null, method: null };

/** The store of the page in this window. */
export function createStore(): Store {
  return new PageStore(window);
}

class PageStore implements Store {
  private readonly http = new Http();
  readonly place: Signal<Place>;
  readonly session = signal<Session | null>(null);
  readonly about = signal<About | null>(null);
  readonly agents = signal<readonly AgentRow[] | null>(null);
  readonly notices = signal<readonly Notice[]>([]);
  readonly online: ReadonlySignal<boolean> = this.http.online;
  private readonly list = new ConversationList(this.http);
  readonly conversations = this.list.rows;
  readonly hasMore = this.list.hasMore;
  readonly search = this.list.search;
  private readonly opened = signal<ConversationState | null>(null);
  readonly current = computed<Conversation | null>(() => this.opened.value);
  private readonly environment: Environment;

  constructor(private readonly window: Window & typeof globalThis) {
    this.place = signal(placeAt(window.location.hash));
    this.environment = {
      supervisor: new A2ASupervisor(this.http, new URL(".", window.document.baseURI).href),
      frames: new Frames(),
      subject: () => this.session.value?.subject ?? null,
    };
    this.http.onUnauthorized = () => void this.readSession();
    window.addEventListener("hashchange", () => (this.place.value = placeAt(window.location.hash)));
    window.addEventListener("online", () => this.wake(true));
    window.document.addEventListener("visibilitychange", () => window.document.hidden || this.wake(false));
    effect(() => void (agentTitles.value = this.about.value?.agent_titles ?? {}));
    effect(() => this.show(this.place.value));
    void this.readSession();
  }

  go(place: Place): void {
    this.place.value = place;
    this.window.location.hash = addressOf(place);
  }

  async signIn(key: string): Promise<string | null> {
    try {
      this.applySession(await signIn(this.http, key));
      return null;
    } catch (error) {
      return problemOf(error);
    }
  }

  async signOut(): Promise<void> {
    await signOut(this.http);
    await this.readSession();
  }

  searchFor(text: string): void {
    this.list.searchFor(text);
  }

  loadMore(): Promise<void> {
    return this.list.loadMore();
  }

  async rename(conversation: string, name: string): Promise<void> {
    await renameConversation(this.http, conversation, name);
    this.list.replace(conversation, (row) => ({ ...row, name }));
    const opened = this.opened.value;
    if (opened?.id === conversation) opened.name.value = name;
  }

  async remove(conversation: string): Promise<void> {
    try {
      await deleteConversation(this.http, conversation, false);
    } catch (error) {
      if (!(error instanceof RequestError && error.status === CONFLICT)) throw error;
      await deleteConversation(this.http, conversation, true);
    }
    this.list.remove(conversation);
    const place = this.place.value;
    if (place.view === "chat" && place.conversation === conversation) this.go({ view: "chat", conversation: null });
  }

  async ask(question: string, metadata?: Record<string, unknown>): Promise<void> {
    const conversation = this.opened.value ?? this.begin();
    const running = conversation.ask(question, metadata);
    void this.list.refresh();
    await running;
  }

  async retry(turn: Turn): Promise<void> {
    await this.ask(turn.question);
  }

  async stop(turn: Turn): Promise<void> {
    if (turn instanceof TurnState) await turn.stop();
  }

  async answer(turn: Turn, form: Form, answer: FormAnswer): Promise<string | null> {
    return turn instanceof TurnState ? await turn.answer(form, answer) : null;
  }

  dismiss(notice: Notice): void {
    this.notices.value = this.notices.value.filter((one) => one.id !== notice.id);
  }

  async loadAgents(): Promise<void> {
    const { agents } = await getAgents(this.http);
    this.agents.value = agents;
  }

  request<Result>(method: "GET" | "POST", path: string, body?: unknown): Promise<Result> {
    return this.http.json(method, path, body);
  }

  private begin(): ConversationState {
    const conversation = this.prepared(randomId());
    this.opened.value = conversation;
    this.go({ view: "chat", conversation: conversation.id });
    return conversation;
  }

  private prepared(id: string): ConversationState {
    const conversation = new ConversationState(id, this.environment);
    conversation.onRest = () => void this.list.refresh();
    return conversation;
  }

  private show(place: Place): void {
    if (place.view !== "chat") return;
    const opened = this.opened.peek();
    if (opened?.id === place.conversation) return;
    opened?.leave();
    this.opened.value = place.conversation === null ? null : this.prepared(place.conversation);
    if (this.session.peek()?.signed_in) void this.load();
  }

  private async load(): Promise<void> {
    const conversation = this.opened.value;
    if (conversation === null) return;
    try {
      conversation.merge(await getConversation(this.http, conversation.id));
    } catch (error) {
      if (!(error instanceof RequestError && error.status === NOT_FOUND)) throw error;
    }
  }

  private async readSession(): Promise<void> {
    try {
      this.applySession(await getSession(this.http));
    } catch (error) {
      if (error instanceof RequestError && error.status === NOT_FOUND) this.applySession(OPEN_SESSION);
      else this.window.setTimeout(() => void this.readSession(), 2000);
    }
  }

  private applySession(session: Session): void {
    this.http.csrfToken = session.csrf_token;
    this.session.value = session;
    if (session.required && !session.signed_in) return;
    void this.list.refresh();
    void this.load();
    this.wake(false);
    void getAbout(this.http).then((about) => (this.about.value = about), () => {});
  }

  private wake(mayBeDead: boolean): void {
    this.opened.value?.wake(mayBeDead);
  }
}
