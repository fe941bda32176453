import type { RunView } from "../view";

export function Timeline({ run }: { run: RunView }) {
  return <p>{String(run)}</p>;
}
