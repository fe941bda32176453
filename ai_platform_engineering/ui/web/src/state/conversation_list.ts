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
    this.searchTimer = setTimeout(() => void this.refresh(), SEARCH_DELAY);
  }

  /** Load the first page again. Rows of later pages stay. */
  async refresh(): Promise<void> {
    const search = this.search.value;
    const page = await listConversations(this.http, { limit: PAGE_SIZE, search }).catch(() => null);
    if (page === null || search !== this.search.value) return;
    this.rows.value = page.conversations;
    this.setNext(page.next);
  }

  async loadMore(): Promise<void> {
    if (this.next === null) return;
    const page = await listConversations(this.http, { limit: PAGE_SIZE, search: this.search.value, after: this.next });
    this.rows.value = [...this.rows.value, ...page.conversations];
    this.setNext(page.next);
  }

  replace(id: string, change: (row: ConversationRow) => ConversationRow): void {
    this.rows.value = this.rows.value.map((row) => (row.id === id ? change(row) : row));
  }

  remove(id: string): void {
    this.rows.value = this.rows.value.filter((row) => row.id !== id);
  }

  private setNext(next: string | null): void {
    this.next = next;
    this.hasMore.value = next !== null;
  }
}
