import type { Store } from "../store";

/** The store of the page in this window. */
export function createStore(): Store {
  throw new Error("not implemented");
}
