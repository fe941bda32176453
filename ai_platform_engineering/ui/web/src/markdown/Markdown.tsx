// Markdown from a model, a tool or a document. Nothing in it can run, load or take over a part of the page.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { TEXTS } from "../texts";
import { advance, type Block, blocksOf, NOTHING_PARSED } from "./blocks";
import { BlockView, isDiagram } from "./BlockView";
import { PlainText } from "./PlainText";

/** Each diagram is a frame. */
const MAX_DIAGRAMS = 20;

interface Props {
  text: string;
  /** Whether the text still grows: only its last block is parsed again. */
  streaming?: boolean;
}

export function Markdown({ text, streaming = false }: Props) {
  const asText = useSignal(false);
  const blocks = useBlocks(text, streaming);
  if (asText.value) {
    return (
      <div class="markdown">
        <PlainText text={text} />
        <p class="cut">
          <button type="button" class="button small" onClick={() => (asText.value = false)}>
            {TEXTS.markdown.showFormatted}
          </button>
        </p>
      </div>
    );
  }
  return (
    <div class="markdown">
      <Blocks blocks={blocks.shown} />
      {blocks.cut && (
        <p class="cut">
          {TEXTS.markdown.cut(text.length)}{" "}
          <button type="button" class="button small" onClick={() => (asText.value = true)}>
            {TEXTS.markdown.showAll}
          </button>
        </p>
      )}
    </div>
  );
}

function Blocks({ blocks }: { blocks: readonly Block[] }) {
  let diagrams = 0;
  return (
    <>
      {blocks.map((block) => (
        <BlockView key={block.key} block={block} draws={isDiagram(block) && ++diagrams <= MAX_DIAGRAMS} />
      ))}
    </>
  );
}

/** Parses one piece of the text per frame. */
function useBlocks(text: string, streaming: boolean): { shown: readonly Block[]; cut: boolean } {
  const parsed = useRef(NOTHING_PARSED);
  const frame = useSignal(0);
  // Read, so that the component is rendered again with each frame.
  frame.value;
  parsed.current = advance(parsed.current, text, streaming);
  const { complete, cut } = parsed.current;
  useEffect(() => {
    if (complete) return;
    const request = requestAnimationFrame(() => (frame.value += 1));
    return () => cancelAnimationFrame(request);
  });
  return { shown: blocksOf(parsed.current), cut };
}
