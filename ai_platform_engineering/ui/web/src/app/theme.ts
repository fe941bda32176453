// The colors that a person chose, stored in this browser.

import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "theme";

export const theme = signal<Theme>(stored());
apply(theme.value);

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  apply(chosen);
  try {
    localStorage.setItem(KEY, chosen);
  } catch {
    // The browser stores nothing; the choice holds until the page is closed.
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

function apply(chosen: Theme): void {
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}
