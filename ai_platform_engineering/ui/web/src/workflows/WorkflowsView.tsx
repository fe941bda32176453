import type { Store } from "../store";

export function WorkflowsView({ store }: { store: Store }) {
  return <p>{String(store)}</p>;
}
