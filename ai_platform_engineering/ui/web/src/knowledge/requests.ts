// The knowledge base inside the supervisor: its REST API at /rag.

import type { Store } from "../store";

/** The documents of one origin: a directory, an address or a sitemap. */
export interface Datasource {
  name: string;
  origin: string;
  documents: number;
  chunks: number;
  updated: string | null;
}

export interface SearchResult {
  document_id: string;
  title: string;
  section: string;
  datasource: string;
  /** Where people read it: an address or a path. */
  link: string;
  /** From 0 to 1. */
  score: number;
  /** The words that matched are between pairs of asterisks. */
  snippet: string;
  updated: string | null;
}

export interface SearchResults {
  results: SearchResult[];
  /** A limitation of this search. */
  note: string | null;
}

export interface KnowledgeDocument {
  document_id: string;
  title: string;
  datasource: string;
  link: string;
  updated: string | null;
  /** Markdown. */
  text: string;
}

const RESULTS = 10;

export async function loadDatasources(store: Store): Promise<Datasource[]> {
  return (await store.request<{ datasources: Datasource[] }>("GET", "rag/v1/datasources")).datasources;
}

export function searchKnowledge(store: Store, query: string, datasource: string | null): Promise<SearchResults> {
  return store.request("POST", "rag/v1/search", { query, limit: RESULTS, ...(datasource && { datasource }) });
}

export function loadDocument(store: Store, id: string): Promise<KnowledgeDocument> {
  // Proxies may refuse an encoded slash.
  const path = id.split("/").map(encodeURIComponent).join("/");
  return store.request("GET", `rag/v1/documents/${path}`);
}
