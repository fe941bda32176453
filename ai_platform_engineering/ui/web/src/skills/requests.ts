// The skills that the person may use: `GET /skills` and one skill of it.

import type { Store } from "../store";

export type Visibility = "global" | "team" | "personal";
export type SkillSource = "built-in" | "directory" | "git" | "api";

export interface SkillRow {
  name: string;
  description: string;
  visibility: Visibility;
  team: string | null;
  source: SkillSource;
  /** A path, a repository with its commit, or the address of an API client. */
  origin: string;
  tags: string[];
  files: string[];
}

export interface SkillDetail extends SkillRow {
  license: string | null;
  compatibility: string | null;
  /** Markdown. */
  instructions: string;
  /** The text of each file by its path. */
  contents: Record<string, string> | null;
  added_by: string | null;
  added_at: string | null;
  updated_by: string | null;
  updated_at: string | null;
  overrides: { source: SkillSource; origin: string; reason: string }[];
}

export interface SkillPage {
  skills: SkillRow[];
  meta: { total: number; limit: number; offset: number };
}

export function loadSkills(store: Store, search: string, offset: number, limit: number): Promise<SkillPage> {
  const query = new URLSearchParams({ q: search, offset: String(offset), limit: String(limit) });
  return store.request("GET", `skills?${query}`);
}

export function loadSkill(store: Store, name: string): Promise<SkillDetail> {
  return store.request("GET", `skills/${encodeURIComponent(name)}?include_content=true`);
}
