import { LoadStatus, useLoaded } from "../controls/loading";
import { Reader } from "../controls/Reader";
import { linkTarget } from "../markdown/addresses";
import { clean } from "../markdown/clean_text";
import { Markdown } from "../markdown/Markdown";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { loadDocument } from "./requests";
import { age } from "./values";

export function DocumentReader({ store, id, close }: { store: Store; id: string; close: () => void }) {
  const loaded = useLoaded(() => loadDocument(store, id), [id]);
  const document = loaded.value;
  const address = document && linkTarget(document.link);
  return (
    <Reader title={clean(document?.title ?? id)} back={TEXTS.knowledge.back} close={close}>
      <LoadStatus loaded={loaded} />
      {document && (
        <>
          <p class="soft">
            {document.datasource} ·{" "}
            {address ? (
              <a href={address} target="_blank" rel="noopener noreferrer">{clean(document.link)}</a>
            ) : (
              clean(document.link)
            )}
            {document.updated && <> · {TEXTS.knowledge.updated(age(document.updated, Date.now()))}</>}
          </p>
          <div class="card document">
            <Markdown text={document.text} />
          </div>
        </>
      )}
    </Reader>
  );
}
