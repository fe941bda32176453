// The place in the page and its address, which is the fragment of the page's URL.

import type { Place } from "../store";

const VIEWS = ["agents", "workflows", "skills", "knowledge", "replay"] as const;

export function addressOf(place: Place): string {
  if (place.view !== "chat") return `#/${place.view}`;
  return place.conversation === null ? "#/" : `#/c/${encodeURIComponent(place.conversation)}`;
}

export function placeAt(fragment: string): Place {
  const path = fragment.replace(/^#\/?/, "");
  const view = VIEWS.find((name) => name === path);
  if (view) return { view };
  const conversation = /^c\/(.+)$/.exec(path)?.[1];
  return { view: "chat", conversation: conversation === undefined ? null : decoded(conversation) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
