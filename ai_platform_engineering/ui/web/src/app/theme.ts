// The colors that a person chose, stored in this browser.

import { computed, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "theme";

export const theme = signal<Theme>(stored());
apply(theme.value);

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = signal(systemIsDark.matches);
systemIsDark.addEventListener("change", (event) => (systemTheme.value = event.matches));

/** Whether the page is dark now, for parts that style sheets do not reach. */
export const isDark = computed(() => (theme.value === "system" ? systemTheme.value : theme.value === "dark"));

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
