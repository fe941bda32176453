// A page with single parts of the page, for browser tests: `page parts FOLDER` builds it.

import { render } from "preact";

import { setTheme } from "../../src/app/theme";
import { Markdown } from "../../src/markdown/Markdown";
import { Timeline } from "../../src/timeline/Timeline";
import type { RunView } from "../../src/view";

const root = document.getElementById("page");
root?.classList.add("parts");

const parts = {
  markdown(text: string, streaming = false): void {
    if (root) render(<Markdown text={text} streaming={streaming} />, root);
  },
  timeline(run: RunView): void {
    if (root) render(<Timeline run={run} />, root);
  },
  /** Renders a growing text, some characters every 25 ms. */
  async stream(text: string, characters: number): Promise<void> {
    for (let end = characters; end < text.length + characters; end += characters) {
      parts.markdown(text.slice(0, end), true);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    parts.markdown(text);
  },
  clear(): void {
    if (root) render(null, root);
  },
  setTheme,
};

declare global {
  interface Window {
    parts: typeof parts;
  }
}
window.parts = parts;
