import type { Store } from "../store";

export function SignIn({ store }: { store: Store }) {
  return <p>{String(store)}</p>;
}
