import type { Store } from "../store";

export function AgentsView({ store }: { store: Store }) {
  return <p>{String(store)}</p>;
}
