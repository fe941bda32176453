// The names of agents as people read them: the titles of their manifests.

import { signal } from "@preact/signals";

import { SUPERVISOR } from "../events";
import { clean } from "../markdown/clean_text";
import { TEXTS } from "../texts";

export const agentTitles = signal<Readonly<Record<string, string>>>({});

export function agentName(name: string): string {
  if (name === SUPERVISOR) return TEXTS.chat.supervisor;
  return agentTitles.value[name] ?? clean(name).replace(/[_-]+/g, " ").replace(/^\w/, (letter) => letter.toUpperCase());
}
