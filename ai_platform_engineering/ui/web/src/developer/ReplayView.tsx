import type { Store } from "../store";

export function ReplayView({ store }: { store: Store }) {
  return <p>{String(store)}</p>;
}
