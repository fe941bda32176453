// Emphasis, code, links and pictures within a block. Every piece of the text becomes a text node or an attribute that
// was checked; HTML in it is text.

import type { MarkedToken, Token, Tokens } from "marked";
import { Component, type ComponentChildren } from "preact";

import { hiddenHost, linkTarget, pictureSource } from "./addresses";
import { decoded } from "./clean_text";

interface Props {
  tokens: readonly Token[] | undefined;
}

/** Rendered again only when a token has changed: the parts of a list that still grows are the same objects. */
export class Inline extends Component<Props> {
  override shouldComponentUpdate({ tokens }: Props): boolean {
    const before = this.props.tokens;
    return tokens?.length !== before?.length || tokens?.some((token, index) => token !== before?.[index]) === true;
  }

  override render({ tokens }: Props) {
    return <>{(tokens as readonly MarkedToken[] | undefined)?.map(rendered)}</>;
  }
}

function rendered(token: MarkedToken): ComponentChildren {
  switch (token.type) {
    case "text":
      // `text` has some of the character references decoded, `raw` has none.
      return token.tokens ? <Inline tokens={token.tokens} /> : decoded(token.raw);
    case "escape":
      return token.text;
    case "strong":
      return <strong><Inline tokens={token.tokens} /></strong>;
    case "em":
      return <em><Inline tokens={token.tokens} /></em>;
    case "del":
      return <del><Inline tokens={token.tokens} /></del>;
    case "codespan":
      return <code>{token.text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link token={token} />;
    case "image":
      return <Picture token={token} />;
    case "html":
      return <RawHtml text={token.text} />;
    case "checkbox":
      return null;
    default:
      return token.raw;
  }
}

/** HTML is shown as it is written, but for line breaks and comments. */
export function RawHtml({ text }: { text: string }) {
  if (/^<br\s*\/?>$/i.test(text.trim())) return <br />;
  if (/^<!--[^]*-->$/.test(text.trim())) return null;
  return <>{text}</>;
}

function Link({ token }: { token: Tokens.Link }) {
  const target = linkTarget(token.href);
  const text = <Inline tokens={token.tokens} />;
  if (target === null) return <>{text}<Address written={token.href} text={token.text} /></>;
  const host = hiddenHost(token.text, target);
  return (
    <>
      <a href={target} target="_blank" rel="noopener noreferrer">{text}</a>
      {host !== null && <> ({host})</>}
    </>
  );
}

/** Only pictures of the supervisor are loaded: any other would tell its host that the text was read. */
function Picture({ token }: { token: Tokens.Image }) {
  const alternative = decoded(token.text) || decoded(token.href);
  const source = pictureSource(token.href, document.baseURI);
  if (source !== null) return <img src={source} alt={alternative} loading="lazy" decoding="async" />;
  const target = linkTarget(token.href);
  if (target === null) return <>{alternative}</>;
  return <a href={target} target="_blank" rel="noopener noreferrer">{alternative}</a>;
}

/** The address of a link that the page does not follow, e.g. of a file. */
function Address({ written, text }: { written: string; text: string }) {
  const address = decoded(written);
  if (address === "" || address === decoded(text)) return null;
  return <> (<code>{address}</code>)</>;
}
