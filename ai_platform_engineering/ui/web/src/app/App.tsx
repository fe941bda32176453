// The frame of the page: header, conversations, and the view that the address names.

import { useSignal } from "@preact/signals";

import { AgentsView } from "../agents/AgentsView";
import { Chat } from "../chat/Chat";
import { ReplayView } from "../developer/ReplayView";
import { CrossIcon, MenuIcon } from "../icons";
import { KnowledgeView } from "../knowledge/KnowledgeView";
import { SignIn } from "../session/SignIn";
import { SkillsView } from "../skills/SkillsView";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { WorkflowsView } from "../workflows/WorkflowsView";
import { Notices } from "./Notices";
import { Sidebar } from "./Sidebar";

export function App({ store }: { store: Store }) {
  const menuOpen = useSignal(false);
  const session = store.session.value;
  if (session === null) return <p class="loading" role="status">{TEXTS.app.loading}</p>;
  if (session.required && !session.signed_in) return <SignIn store={store} />;
  return (
    <div class={menuOpen.value ? "frame menu-open" : "frame"}>
      <a class="skip" href="#main">{TEXTS.app.skip}</a>
      <header class="top">
        <button
          type="button"
          class="button plain menu-button"
          aria-label={menuOpen.value ? TEXTS.app.closeMenu : TEXTS.app.menu}
          aria-expanded={menuOpen.value}
          aria-controls="sidebar"
          onClick={() => (menuOpen.value = !menuOpen.value)}
        >
          {menuOpen.value ? <CrossIcon /> : <MenuIcon />}
        </button>
        <span class="brand" aria-hidden="true">{TEXTS.title}</span>
      </header>
      <Sidebar store={store} onNavigate={() => (menuOpen.value = false)} />
      <main id="main" class="main" tabIndex={-1}>
        {/* The header with the visible title is not displayed on wide screens. */}
        <h1 class="visually-hidden">{TEXTS.title}</h1>
        <Banners store={store} />
        <View store={store} />
      </main>
      <Notices store={store} />
    </div>
  );
}

function View({ store }: { store: Store }) {
  switch (store.place.value.view) {
    case "agents":
      return <AgentsView store={store} />;
    case "workflows":
      return <WorkflowsView store={store} />;
    case "skills":
      return <SkillsView store={store} />;
    case "knowledge":
      return <KnowledgeView store={store} />;
    case "replay":
      return <ReplayView store={store} />;
    default:
      return <Chat store={store} />;
  }
}

function Banners({ store }: { store: Store }) {
  const about = store.about.value;
  return (
    <div role="status">
      {!store.online.value && <p class="banner">{TEXTS.app.disconnected}</p>}
      {about?.degraded && <p class="banner">{TEXTS.app.degraded(about.degraded)}</p>}
      {about?.model.offline && <p class="banner quiet">{TEXTS.app.offlineModel}</p>}
    </div>
  );
}
