// One conversation: its turns, and the composer.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { DownIcon } from "../icons";
import { SharingBar } from "../sharing/SharingBar";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { Composer } from "./Composer";
import { agentName } from "./names";
import { TurnView } from "./TurnView";

/** Closer to the end than this many pixels, the page follows new text. */
const FOLLOW_DISTANCE = 80;

export function Chat({ store }: { store: Store }) {
  const draft = useSignal("");
  const conversation = store.current.value;
  const turns = conversation?.turns.value ?? [];
  const scroller = useRef<HTMLDivElement>(null);
  const following = useFollowing(scroller, conversation?.id ?? null);
  return (
    <div class="chat">
      {conversation && <SharingBar key={conversation.id} store={store} conversation={conversation} />}
      <div class="turns-scroll" ref={scroller} tabIndex={0} role="region" aria-label={TEXTS.chat.log}>
        <div class="turns">
          {turns.length === 0 && <Empty store={store} />}
          {turns.map((turn) => (
            <TurnView key={turn.key} store={store} turn={turn} edit={(question) => (draft.value = question)} />
          ))}
        </div>
      </div>
      {!following.value && turns.length > 0 && (
        <button
          type="button"
          class="button newest"
          aria-label={TEXTS.chat.newestBelow}
          title={TEXTS.chat.newestBelow}
          onClick={() => scrollToEnd(scroller.current)}
        >
          <DownIcon />
        </button>
      )}
      <Composer store={store} draft={draft} />
    </div>
  );
}

/** Keeps the end in view while text arrives, unless the person has scrolled up. */
function useFollowing(scroller: { current: HTMLDivElement | null }, conversation: string | null) {
  const following = useSignal(true);
  useEffect(() => {
    const element = scroller.current;
    const content = element?.firstElementChild;
    if (!element || !content) return;
    following.value = true;
    scrollToEnd(element);
    const onScroll = () => {
      following.value = element.scrollHeight - element.scrollTop - element.clientHeight < FOLLOW_DISTANCE;
    };
    const onGrowth = new ResizeObserver(() => following.value && scrollToEnd(element));
    element.addEventListener("scroll", onScroll, { passive: true });
    onGrowth.observe(content);
    return () => {
      element.removeEventListener("scroll", onScroll);
      onGrowth.disconnect();
    };
  }, [conversation]);
  return following;
}

function scrollToEnd(element: HTMLElement | null): void {
  if (element) element.scrollTop = element.scrollHeight;
}

function Empty({ store }: { store: Store }) {
  const loading = store.current.value?.loading.value ?? "loaded";
  if (loading === "loaded") return <Welcome store={store} />;
  const isHidden = loading === "missing" && store.session.value?.required;
  return <p class="soft" role="status">{TEXTS.conversations[isHidden ? "missingOrHidden" : loading]}</p>;
}

function Welcome({ store }: { store: Store }) {
  const suggestions = store.about.value?.suggestions ?? [];
  return (
    <section class="welcome">
      <h2>{TEXTS.chat.welcome}</h2>
      <p class="soft">{TEXTS.chat.welcomeHint}</p>
      {suggestions.length > 0 && (
        <ul class="suggestions" aria-label={TEXTS.chat.suggestions}>
          {suggestions.map(({ agent, question }) => (
            <li key={question}>
              <button type="button" class="button suggestion" onClick={() => void store.ask(question)}>
                <span class="badge">{agentName(agent)}</span> {question}
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
