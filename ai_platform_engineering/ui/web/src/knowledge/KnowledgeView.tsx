// The knowledge base: its sources, a search, and one document.

import { useSignal, type Signal } from "@preact/signals";

import { Fold } from "../controls/Fold";
import { LoadStatus, statusOf, useLoaded, type Loaded } from "../controls/loading";
import { SearchField } from "../controls/SearchField";
import { SettingLines } from "../controls/SettingLines";
import { ViewHeader } from "../controls/ViewHeader";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { DocumentReader } from "./DocumentReader";
import { loadDatasources, type Datasource } from "./requests";
import { SearchResultList } from "./SearchResultList";
import { age } from "./values";

export function KnowledgeView({ store }: { store: Store }) {
  const opened = useSignal<string | null>(null);
  const search = useSignal("");
  const datasource = useSignal<string | null>(null);
  const loaded = useLoaded(() => loadDatasources(store), []);
  return (
    <section class="view">
      <ViewHeader title={TEXTS.knowledge.title} hint={TEXTS.knowledge.hint} />
      {opened.value === null ? (
        <Overview
          store={store}
          loaded={loaded}
          search={search}
          datasource={datasource}
          open={(id) => (opened.value = id)}
        />
      ) : (
        <DocumentReader store={store} id={opened.value} close={() => (opened.value = null)} />
      )}
    </section>
  );
}

interface OverviewProps {
  store: Store;
  loaded: Loaded<Datasource[]>;
  search: Signal<string>;
  datasource: Signal<string | null>;
  open: (documentId: string) => void;
}

function Overview({ store, loaded, search, datasource, open }: OverviewProps) {
  const sources = loaded.value;
  // The supervisor has no such resource while the knowledge base is off or on a server of its own.
  if (statusOf(loaded.error) === 404) {
    return <p class="card">{store.about.value?.knowledge_base ? TEXTS.knowledge.external : TEXTS.knowledge.disabled}</p>;
  }
  return (
    <>
      <LoadStatus loaded={loaded} />
      {sources && sources.length > 0 && (
        <>
          <SearchField label={TEXTS.knowledge.search} text={search.value} find={(text) => (search.value = text)} />
          {sources.length > 1 && <SourceChoice sources={sources} datasource={datasource} />}
          {search.value && (
            <SearchResultList store={store} query={search.value} datasource={datasource.value} open={open} />
          )}
        </>
      )}
      {sources && <Sources sources={sources} />}
    </>
  );
}

function SourceChoice({ sources, datasource }: { sources: readonly Datasource[]; datasource: Signal<string | null> }) {
  return (
    <label class="labeled source-choice">
      {TEXTS.knowledge.searchIn}
      <select
        class="input"
        value={datasource.value ?? ""}
        onChange={(event) => (datasource.value = event.currentTarget.value || null)}
      >
        <option value="">{TEXTS.knowledge.allSources}</option>
        {sources.map((source) => (
          <option key={source.name} value={source.name}>{source.name}</option>
        ))}
      </select>
    </label>
  );
}

function Sources({ sources }: { sources: readonly Datasource[] }) {
  const now = Date.now();
  return (
    <>
      <h3>{TEXTS.knowledge.sources(sources.length)}</h3>
      {sources.length === 0 ? (
        <HowToIngest text={TEXTS.knowledge.none} />
      ) : (
        <>
          <ul class="entries">
            {sources.map((source) => (
              <li key={source.name} class="card entry">
                <h4 class="entry-title">{source.name}</h4>
                <p>{TEXTS.knowledge.counts(source.documents, source.chunks)}</p>
                {source.updated && (
                  <p class="soft entry-note">
                    <time dateTime={source.updated}>{TEXTS.knowledge.updated(age(source.updated, now))}</time>
                  </p>
                )}
                <p class="soft entry-note">{source.origin}</p>
              </li>
            ))}
          </ul>
          <Fold summary={TEXTS.knowledge.addDocuments}>
            <HowToIngest text={TEXTS.knowledge.ingest} />
          </Fold>
        </>
      )}
    </>
  );
}

function HowToIngest({ text }: { text: string }) {
  return (
    <div class="fold-body">
      <p>{text}</p>
      <SettingLines
        lines={["platform-engineer ingest ./runbooks", "platform-engineer ingest https://docs.example.com/guide/ --depth 2"]}
        label={TEXTS.knowledge.ingestCommands}
      />
    </div>
  );
}
