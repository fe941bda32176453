// The agents of the supervisor and the model that it uses.

import { useSignal } from "@preact/signals";

import { LoadStatus, useLoaded } from "../controls/loading";
import { ViewHeader } from "../controls/ViewHeader";
import { RetryIcon } from "../icons";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { AgentCard } from "./AgentCard";
import { findAgents, type FoundAgent } from "./filtering";
import { ModelCard } from "./ModelCard";

export function AgentsView({ store }: { store: Store }) {
  const filter = useSignal("");
  const loaded = useLoaded(() => store.loadAgents(), []);
  const agents = store.agents.value;
  const about = store.about.value;
  const found = findAgents(agents ?? [], filter.value);
  return (
    <section class="view">
      <ViewHeader title={TEXTS.agents.title} hint={TEXTS.agents.hint}>
        <button type="button" class="button small" disabled={loaded.loading} onClick={loaded.reload}>
          <RetryIcon /> {TEXTS.views.refresh}
        </button>
      </ViewHeader>
      {about && <ModelCard about={about} />}
      <LoadStatus loaded={{ ...loaded, value: agents }} />
      {agents !== null && agents.length === 0 && <p>{TEXTS.agents.none}</p>}
      {agents !== null && agents.length > 0 && (
        <>
          <input
            class="input"
            type="search"
            aria-label={TEXTS.agents.filter}
            placeholder={TEXTS.agents.filter}
            value={filter.value}
            onInput={(event) => (filter.value = event.currentTarget.value)}
          />
          {found.length === 0 && <p role="status">{TEXTS.agents.noneFound}</p>}
          <Group store={store} title={TEXTS.agents.enabled} found={found.filter(({ agent }) => agent.enabled)} />
          <Group store={store} title={TEXTS.agents.disabled} found={found.filter(({ agent }) => !agent.enabled)} />
        </>
      )}
    </section>
  );
}

function Group({ store, title, found }: { store: Store; title: string; found: readonly FoundAgent[] }) {
  if (found.length === 0) return null;
  return (
    <>
      <h3>{title} ({found.length})</h3>
      <ul class="entries">
        {found.map((one) => (
          <AgentCard key={one.agent.name} store={store} found={one} />
        ))}
      </ul>
    </>
  );
}
