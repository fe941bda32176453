// The list of conversations: pages of it, and the search.

import { signal } from "@preact/signals";

import { listConversations, type ConversationRow, type Requests } from "../api";

const PAGE_SIZE = 50;
const SEARCH_DELAY = 200;

export class ConversationList {
  readonly rows = signal<readonly ConversationRow[]>([]);
  readonly hasMore = signal(false);
  readonly search = signal("");
  private next: string | null = null;
  private searchTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly http: Requests) {}

  searchFor(text: string): void {
    this.search.value = text;
    clearTimeout(this.searchTimer);
    this.searchTimer = setTimeout(() => void this.find().catch(() => {}), SEARCH_DELAY);
  }

  /** The newest conversations. They replace the rows, unless a search is shown. */
  async refresh(): Promise<readonly ConversationRow[]> {
    const page = await listConversations(this.http, { limit: PAGE_SIZE });
    if (this.search.value) return page.conversations;
    const newest = new Set(page.conversations.map((row) => row.id));
    const oldest = page.conversations.at(-1)?.changed ?? "";
    const isDeeper = this.rows.value.length > PAGE_SIZE;
    const deeper = isDeeper ? this.rows.value.filter((row) => !newest.has(row.id) && row.changed <= oldest) : [];
    this.rows.value = [...page.conversations, ...deeper];
    if (!isDeeper) this.setNext(page.next);
    return page.conversations;
  }

  async loadMore(): Promise<void> {
    if (this.next === null) return;
    const search = this.search.value;
    const page = await listConversations(this.http, { limit: PAGE_SIZE, search, after: this.next });
    if (search !== this.search.value) return;
    const known = new Set(this.rows.value.map((row) => row.id));
    this.rows.value = [...this.rows.value, ...page.conversations.filter((row) => !known.has(row.id))];
    this.setNext(page.next);
  }

  replace(id: string, change: (row: ConversationRow) => ConversationRow): void {
    this.rows.value = this.rows.value.map((row) => (row.id === id ? change(row) : row));
  }

  clear(): void {
    this.search.value = "";
    this.rows.value = [];
    this.setNext(null);
  }

  remove(id: string): void {
    this.rows.value = this.rows.value.filter((row) => row.id !== id);
  }

  private async find(): Promise<void> {
    const search = this.search.value;
    const page = await listConversations(this.http, { limit: PAGE_SIZE, search });
    if (search !== this.search.value) return;
    this.rows.value = page.conversations;
    this.setNext(page.next);
  }

  private setNext(next: string | null): void {
    this.next = next;
    this.hasMore.value = next !== null;
  }
}
