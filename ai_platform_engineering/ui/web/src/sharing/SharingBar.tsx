// The groups that a conversation is shared with, above its turns, and the button that changes them.

import { useSignal } from "@preact/signals";

import { visible } from "../forms/visible_text";
import { PeopleIcon } from "../icons";
import type { Conversation, Store } from "../store";
import { TEXTS } from "../texts";
import { ShareDialog } from "./ShareDialog";

/** Of more groups than this, the others fold away. */
const MAX_SHOWN = 4;

export function SharingBar({ store, conversation }: { store: Store; conversation: Conversation }) {
  const isOpen = useSignal(false);
  const sharing = conversation.sharing.value;
  const session = store.session.value;
  if (!session?.required || sharing === null) return null;
  return (
    <div class="sharing">
      <div class="sharing-state" role="status"><SharedWith groups={sharing.groups.map(visible)} /></div>
      {sharing.may_share && sharing.owner !== null && (
        <button type="button" class="button small" aria-haspopup="dialog" onClick={() => (isOpen.value = true)}>
          {TEXTS.sharing.share}
        </button>
      )}
      {isOpen.value && (
        <ShareDialog
          own={session.groups}
          shared={sharing.groups}
          save={(groups) => store.share(conversation.id, groups)}
          close={() => (isOpen.value = false)}
        />
      )}
    </div>
  );
}

function SharedWith({ groups }: { groups: readonly string[] }) {
  if (groups.length === 0) return <span class="soft">{TEXTS.sharing.notShared}</span>;
  const hidden = groups.slice(MAX_SHOWN);
  return (
    <>
      <PeopleIcon />
      {hidden.length === 0 && <span>{TEXTS.sharing.with(groups)}</span>}
      {hidden.length > 0 && (
        <details>
          <summary>{TEXTS.sharing.withMore(groups.slice(0, MAX_SHOWN), hidden.length)}</summary>
          {hidden.join(", ")}
        </details>
      )}
    </>
  );
}
