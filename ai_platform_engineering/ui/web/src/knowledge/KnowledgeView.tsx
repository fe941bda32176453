import type { Store } from "../store";

export function KnowledgeView({ store }: { store: Store }) {
  return <p>{String(store)}</p>;
}
