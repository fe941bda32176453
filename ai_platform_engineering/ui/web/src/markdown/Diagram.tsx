import { CodeBlock } from "./CodeBlock";
export function Diagram({ source }: { source: string }) { return <CodeBlock code={source} language="mermaid" finished />; }
