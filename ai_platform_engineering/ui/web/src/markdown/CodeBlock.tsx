// A block of code: its language, a copy button, and colors for the languages that the page knows.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { CopyButton } from "../clipboard";
import { TEXTS } from "../texts";
import { canHighlight } from "./languages";
import type { SafeHtml } from "./sanitizing";

/** A longer block stays without colors. */
const MAX_HIGHLIGHTED = 10_000;

interface Props {
  code: string;
  language: string;
  /** Whether the text of the block is complete. */
  finished: boolean;
}

export function CodeBlock({ code, language, finished }: Props) {
  const colored = useSignal<{ code: string; html: SafeHtml } | null>(null);
  useEffect(() => {
    if (!finished || !canHighlight(language) || code.length > MAX_HIGHLIGHTED) return;
    let isWanted = true;
    void import("./highlighting")
      .then(({ highlighted }) => {
        const html = highlighted(code, language);
        if (isWanted && html !== null) colored.value = { code, html };
      })
      // The chunk could not be loaded: the code stays readable without colors.
      .catch(() => undefined);
    return () => {
      isWanted = false;
    };
  }, [code, language, finished]);
  const current = colored.value?.code === code ? colored.value : null;
  const label = language || TEXTS.markdown.plainCode;
  return (
    <div class="code-block">
      <div class="code-head">
        <span class="code-language">{label}</span>
        <CopyButton text={code} />
      </div>
      <pre tabIndex={0} role="group" aria-label={TEXTS.markdown.code(label)} dir="ltr">
        {current ? (
          <code key="colored" dangerouslySetInnerHTML={current.html} />
        ) : (
          <code key="plain">{code}</code>
        )}
      </pre>
    </div>
  );
}
