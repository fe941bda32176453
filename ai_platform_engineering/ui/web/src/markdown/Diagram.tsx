// A mermaid diagram as a picture. A sandboxed frame with an origin and a policy of its own draws it; until then, and
// where that fails, the source is shown.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { isDark } from "../app/theme";
import { asReport, type Draw, MAX_SOURCE } from "../diagram/messages";
import { TEXTS } from "../texts";
import { CodeBlock } from "./CodeBlock";

/** From the load of the frame to the picture. */
const TIMEOUT_MS = 15_000;

export function Diagram({ source }: { source: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const { height, failed, onLoad } = useDrawing(frame, source);
  const asSource = useSignal(false);
  const code = <CodeBlock code={source} language="mermaid" finished />;
  if (failed || source.length > MAX_SOURCE) {
    return (
      <>
        <p class="diagram-note">{TEXTS.markdown.diagramFailed}</p>
        {code}
      </>
    );
  }
  const isDrawn = height !== null;
  return (
    <div class={isDrawn ? "diagram drawn" : "diagram"}>
      {isDrawn && (
        <div class="code-head">
          <span class="code-language">mermaid</span>
          <button type="button" class="button plain small" onClick={() => (asSource.value = !asSource.value)}>
            {asSource.value ? TEXTS.markdown.diagramPicture : TEXTS.markdown.diagramSource}
          </button>
        </div>
      )}
      <iframe
        ref={frame}
        class={asSource.value ? "diagram-frame unseen" : "diagram-frame"}
        title={TEXTS.markdown.diagram(nameOf(source))}
        sandbox="allow-scripts"
        src="diagram.html"
        height={height ?? 1}
        loading="lazy"
        referrerpolicy="no-referrer"
        onLoad={onLoad}
      />
      {(!isDrawn || asSource.value) && code}
    </div>
  );
}

/** Sends the source to the frame when it is ready, and again when the colors change. */
function useDrawing(frame: { current: HTMLIFrameElement | null }, source: string) {
  const height = useSignal<number | null>(null);
  const failed = useSignal(false);
  const ready = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const dark = isDark.value;
  useEffect(() => {
    const onMessage = (event: MessageEvent) => {
      const sender = frame.current?.contentWindow;
      const report = sender && event.source === sender ? asReport(event.data) : null;
      if (report === null) return;
      if (report.state === "ready") ready.value = true;
      else clearTimeout(timer.current);
      if (report.state === "failed") failed.value = true;
      if (report.state === "drawn") height.value = report.height;
    };
    addEventListener("message", onMessage);
    return () => {
      removeEventListener("message", onMessage);
      clearTimeout(timer.current);
    };
  }, []);
  useEffect(() => {
    const draw: Draw = { source, dark };
    // The origin of the frame is opaque: no address can name it.
    if (ready.value) frame.current?.contentWindow?.postMessage(draw, "*");
  }, [ready.value, source, dark]);
  const onLoad = () => {
    if (height.value === null) timer.current = setTimeout(() => (failed.value = true), TIMEOUT_MS);
  };
  return { height: height.value, failed: failed.value, onLoad };
}

/** The title that the diagram has for screen readers, else its kind. */
function nameOf(source: string): string {
  const title = /^\s*(?:accTitle\s*:|title\s*:?)\s*(\S.{0,100})$/m.exec(source)?.[1];
  const kind = /^\s*([a-zA-Z]+)/m.exec(source.replace(/^---\n[^]*?\n---\n/, "").replace(/^%%.*$/gm, ""))?.[1];
  return title ?? kind ?? TEXTS.markdown.diagramKind;
}
