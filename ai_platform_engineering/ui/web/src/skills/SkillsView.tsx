import type { Store } from "../store";

export function SkillsView({ store }: { store: Store }) {
  return <p>{String(store)}</p>;
}
