import type { Store } from "../store";

/** Asks in a new conversation, and shows it. */
export function askInNewConversation(store: Store, question: string): void {
  store.go({ view: "chat", conversation: null });
  void store.ask(question);
}
