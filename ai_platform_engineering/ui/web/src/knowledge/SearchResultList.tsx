import { LoadStatus, useLoaded } from "../controls/loading";
import { clean } from "../markdown/clean_text";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { searchKnowledge, type SearchResult } from "./requests";
import { partsOf } from "./values";

interface Props {
  store: Store;
  query: string;
  datasource: string | null;
  open: (documentId: string) => void;
}

export function SearchResultList({ store, query, datasource, open }: Props) {
  const loaded = useLoaded(() => searchKnowledge(store, query, datasource), [query, datasource]);
  const found = loaded.value;
  return (
    <section aria-label={TEXTS.knowledge.results}>
      <h3>{TEXTS.knowledge.results}</h3>
      <LoadStatus loaded={loaded} />
      {found && (
        <>
          <p class="soft" role="status">{TEXTS.knowledge.found(found.results.length)}</p>
          {found.note && <p class="soft">{found.note}</p>}
          <ol class="results">
            {found.results.map((result, index) => (
              // One document can have several results.
              <Result key={index} result={result} open={open} />
            ))}
          </ol>
        </>
      )}
    </section>
  );
}

function Result({ result, open }: { result: SearchResult; open: (documentId: string) => void }) {
  return (
    <li class="card result">
      <h4 class="entry-title">
        <button type="button" class="link" onClick={() => open(result.document_id)}>{clean(result.title)}</button>
      </h4>
      <p class="soft entry-note">
        {result.datasource} · {clean(result.section)} · {TEXTS.knowledge.score(result.score)}
      </p>
      <p class="snippet">
        {partsOf(result.snippet).map((part, index) => (part.matched ? <mark key={index}>{part.text}</mark> : part.text))}
      </p>
    </li>
  );
}
