// The conversations, and the ways to the other views.

import { useSignal } from "@preact/signals";

import type { ConversationRow } from "../api";
import { copyText } from "../clipboard";
import { PlusIcon, TrashIcon, EditIcon, LinkIcon, PeopleIcon } from "../icons";
import { clean } from "../markdown/clean_text";
import type { Place, Store } from "../store";
import { TEXTS } from "../texts";
import { addressOf } from "./addresses";
import { setTheme, theme, type Theme } from "./theme";

const VIEWS = ["agents", "workflows", "skills", "knowledge", "replay"] as const;
const ATTENTION = new Set(["submitted", "working", "input-required", "auth-required"]);

export function Sidebar({ store, onNavigate }: { store: Store; onNavigate: () => void }) {
  const place = store.place.value;
  const open = (target: Place) => {
    store.go(target);
    onNavigate();
  };
  return (
    <nav id="sidebar" class="sidebar" aria-label={TEXTS.conversations.list}>
      <p class="brand wide-only" aria-hidden="true">{TEXTS.title}</p>
      <button type="button" class="button primary" onClick={() => open({ view: "chat", conversation: null })}>
        <PlusIcon /> {TEXTS.conversations.create}
      </button>
      <input
        class="input"
        type="search"
        aria-label={TEXTS.conversations.search}
        placeholder={TEXTS.conversations.search}
        value={store.search.value}
        onInput={(event) => store.searchFor(event.currentTarget.value)}
      />
      <ConversationList store={store} open={open} />
      <ul class="views">
        {VIEWS.filter((view) => view !== "knowledge" || store.about.value?.knowledge_base !== false).map((view) => (
          <li key={view}>
            <a
              class="view-link"
              href={addressOf({ view })}
              aria-current={place.view === view ? "page" : undefined}
              onClick={onNavigate}
            >
              {TEXTS.app.views[view]}
            </a>
          </li>
        ))}
      </ul>
      <Preferences store={store} />
    </nav>
  );
}

function ConversationList({ store, open }: { store: Store; open: (place: Place) => void }) {
  const rows = store.conversations.value;
  if (rows.length === 0) {
    return <p class="soft list-note">{store.search.value ? TEXTS.conversations.noneFound : TEXTS.conversations.none}</p>;
  }
  return (
    <ul class="conversations">
      {rows.map((row) => (
        <ConversationItem key={row.id} store={store} row={row} open={open} />
      ))}
      {store.hasMore.value && (
        <li>
          <button type="button" class="button plain small" onClick={() => void store.loadMore()}>
            {TEXTS.conversations.more}
          </button>
        </li>
      )}
    </ul>
  );
}

interface ItemProps {
  store: Store;
  row: ConversationRow;
  open: (place: Place) => void;
}

function ConversationItem({ store, row, open }: ItemProps) {
  const renaming = useSignal(false);
  const place = store.place.value;
  const target: Place = { view: "chat", conversation: row.id };
  const isCurrent = place.view === "chat" && place.conversation === row.id;
  const name = clean(row.name ?? row.question) || TEXTS.conversations.unnamed;
  if (renaming.value) {
    return (
      <li>
        <RenameForm
          name={name}
          save={(chosen) => {
            renaming.value = false;
            if (chosen && chosen !== name) void store.rename(row.id, chosen);
          }}
        />
      </li>
    );
  }
  const remove = () => {
    if (window.confirm(TEXTS.conversations.confirmRemoval(name))) void store.remove(row.id);
  };
  return (
    <li class="conversation">
      <a
        class="conversation-link"
        href={addressOf(target)}
        aria-current={isCurrent ? "page" : undefined}
        onClick={() => open(target)}
      >
        {!row.owned && row.groups.length > 0 && store.session.value?.required && (
          <span class="shared-mark" title={TEXTS.conversations.sharedWithYou}>
            <PeopleIcon />
            <span class="visually-hidden">{TEXTS.conversations.sharedWithYou}</span>
          </span>
        )}
        <span class="conversation-name">{name}</span>
        {ATTENTION.has(row.state) && (
          <span class={row.state.endsWith("required") ? "badge wait" : "badge"}>
            {TEXTS.conversations.states[row.state]}
          </span>
        )}
      </a>
      <span class="conversation-actions" role="group" aria-label={TEXTS.conversations.actions(name)}>
        <IconButton label={TEXTS.conversations.rename} onClick={() => (renaming.value = true)}><EditIcon /></IconButton>
        <IconButton label={TEXTS.conversations.link} onClick={() => copyLink(target)}><LinkIcon /></IconButton>
        {row.may_share && (
          <IconButton label={TEXTS.conversations.remove} onClick={remove}><TrashIcon /></IconButton>
        )}
      </span>
    </li>
  );
}

function copyLink(target: Place): void {
  void copyText(new URL(addressOf(target), window.location.href).href);
}

interface IconButtonProps {
  label: string;
  onClick: () => void;
  children: preact.ComponentChildren;
}

function IconButton({ label, onClick, children }: IconButtonProps) {
  return (
    <button type="button" class="button plain small" aria-label={label} title={label} onClick={onClick}>
      {children}
    </button>
  );
}

function RenameForm({ name, save }: { name: string; save: (chosen: string) => void }) {
  const chosen = useSignal(name);
  return (
    <form
      class="rename"
      onSubmit={(event) => {
        event.preventDefault();
        save(chosen.value.trim());
      }}
      onKeyDown={(event) => event.key === "Escape" && save("")}
    >
      <input
        class="input"
        aria-label={TEXTS.conversations.name}
        value={chosen.value}
        ref={(input) => input?.focus()}
        onInput={(event) => (chosen.value = event.currentTarget.value)}
      />
      <button class="button small">{TEXTS.conversations.save}</button>
    </form>
  );
}

function Preferences({ store }: { store: Store }) {
  return (
    <div class="preferences">
      <label>
        <span class="visually-hidden">{TEXTS.app.theme}</span>
        <select
          class="input"
          value={theme.value}
          onChange={(event) => setTheme(event.currentTarget.value as Theme)}
        >
          {Object.entries(TEXTS.app.themes).map(([key, label]) => (
            <option key={key} value={key}>{label}</option>
          ))}
        </select>
      </label>
      {store.session.value?.name && (
        <p class="soft account">{TEXTS.app.signedInAs(clean(store.session.value.name))}</p>
      )}
      {store.session.value?.required && (
        <button type="button" class="button plain" onClick={() => void store.signOut()}>{TEXTS.app.signOut}</button>
      )}
      <p class="soft version">{store.about.value && `${store.about.value.model.name} · ${store.about.value.version}`}</p>
    </div>
  );
}
