// One block of Markdown as elements of the page.

import type { MarkedToken, Token, Tokens } from "marked";
import { Component, type ComponentChildren } from "preact";

import { TEXTS } from "../texts";
import type { Block } from "./blocks";
import { CodeBlock } from "./CodeBlock";
import { Diagram } from "./Diagram";
import { Inline, RawHtml } from "./Inline";
import { Table } from "./Table";

/** The first word after the fence. */
const LANGUAGE = /^[\w+#.-]{1,30}/;

interface Props {
  block: Block;
  /** Whether a diagram may be drawn: a text with very many shows the rest as code. */
  draws: boolean;
}

/** Rendered again only when the block itself has changed. */
export class BlockView extends Component<Props> {
  override shouldComponentUpdate(next: Props): boolean {
    return next.block !== this.props.block;
  }

  override render({ block, draws }: Props) {
    const { token } = block;
    if (token.type === "heading") return <Heading token={token} level={block.level} />;
    if (isDiagram(block) && draws) return <Diagram source={(token as Tokens.Code).text} />;
    return <>{rendered(token, block.finished)}</>;
  }
}

export function isDiagram({ token, finished }: Block): boolean {
  return finished && token.type === "code" && languageOf(token) === "mermaid";
}

function rendered(token: MarkedToken, finished: boolean): ComponentChildren {
  switch (token.type) {
    case "code":
      return <CodeBlock code={token.text} language={languageOf(token)} finished={finished} />;
    case "table":
      return <Table token={token} />;
    case "list":
      return <List token={token} finished={finished} />;
    case "blockquote":
      return <blockquote dir="auto"><Blocks tokens={token.tokens} finished={finished} /></blockquote>;
    case "heading":
      return <p class="heading" dir="auto"><Inline tokens={token.tokens} /></p>;
    case "hr":
      return <hr />;
    case "html":
      return <p class="raw" dir="auto"><RawHtml text={token.text.trimEnd()} /></p>;
    case "paragraph":
      return <p dir="auto"><Inline tokens={token.tokens} /></p>;
    case "space":
    case "def":
    case "checkbox":
      return null;
    default:
      return <Inline tokens={[token]} />;
  }
}

function Blocks({ tokens, finished }: { tokens: readonly Token[]; finished: boolean }) {
  return <>{(tokens as readonly MarkedToken[]).map((token) => rendered(token, finished))}</>;
}

function Heading({ token, level }: { token: Tokens.Heading; level: number }) {
  const Tag = `h${level}` as "h3" | "h4" | "h5" | "h6";
  return <Tag class={`heading depth-${token.depth}`} dir="auto"><Inline tokens={token.tokens} /></Tag>;
}

function List({ token, finished }: { token: Tokens.List; finished: boolean }) {
  const items = token.items.map((item) => (
    <li dir="auto" class={item.task ? "task" : undefined}>
      {item.task && <Checkbox checked={item.checked === true} />}
      <Blocks tokens={item.tokens} finished={finished} />
    </li>
  ));
  if (token.ordered) return <ol start={token.start === "" ? 1 : token.start}>{items}</ol>;
  return <ul>{items}</ul>;
}

function Checkbox({ checked }: { checked: boolean }) {
  return (
    <span class="checkbox" role="img" aria-label={checked ? TEXTS.markdown.taskDone : TEXTS.markdown.taskOpen}>
      {checked ? "☑" : "☐"}
    </span>
  );
}

function languageOf(token: Tokens.Code): string {
  return LANGUAGE.exec(token.lang?.trim() ?? "")?.[0].toLowerCase() ?? "";
}
