// Draws one diagram with mermaid. Runs in a sandboxed frame that can load nothing and reach nothing.

import mermaid from "mermaid";

import { asDraw, type Draw, type Report } from "./messages";

const MAX_EDGES = 400;
/** A wide diagram on a narrow screen scrolls rather than becoming smaller than this. */
const MIN_SCALE = 0.6;

const drawing = document.getElementById("drawing");
let latest: Draw | null = null;

function report(message: Report): void {
  parent.postMessage(message, "*");
}

async function draw(wanted: Draw): Promise<void> {
  latest = wanted;
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    theme: wanted.dark ? "dark" : "default",
    darkMode: wanted.dark,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    fontFamily: "system-ui, sans-serif",
    maxEdges: MAX_EDGES,
    suppressErrorRendering: true,
    // A diagram cannot change these.
    secure: [
      "secure",
      "securityLevel",
      "startOnLoad",
      "maxTextSize",
      "maxEdges",
      "suppressErrorRendering",
      "htmlLabels",
      "themeCSS",
      "dompurifyConfig",
    ],
  });
  try {
    const { svg } = await mermaid.render("diagram", wanted.source);
    if (latest === wanted) show(svg, wanted.dark);
  } catch {
    if (latest === wanted) report({ state: "failed" });
  }
}

function show(svg: string, dark: boolean): void {
  if (!drawing) return;
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  drawing.innerHTML = svg;
  const picture = drawing.querySelector("svg");
  // The frame has the name of the diagram.
  picture?.setAttribute("aria-hidden", "true");
  const width = picture?.viewBox.baseVal?.width ?? 0;
  if (picture) picture.style.minWidth = `${Math.round(width * MIN_SCALE)}px`;
  reportHeight();
}

function reportHeight(): void {
  if (drawing?.firstElementChild) report({ state: "drawn", height: document.documentElement.offsetHeight });
}

addEventListener("message", (event) => {
  const wanted = event.source === parent ? asDraw(event.data) : null;
  if (wanted) void draw(wanted);
});
addEventListener("resize", reportHeight);
// The page's policy stops links of a diagram; without this, the frame would show the browser's error.
addEventListener("click", (event) => event.preventDefault(), true);
report({ state: "ready" });
