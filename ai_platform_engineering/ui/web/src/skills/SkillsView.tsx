// The skills, with a search and pages. One of them can be opened and used.

import { useSignal, type Signal } from "@preact/signals";

import { LoadStatus, useLoaded } from "../controls/loading";
import { SearchField } from "../controls/SearchField";
import { ViewHeader } from "../controls/ViewHeader";
import { clean } from "../markdown/clean_text";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { loadSkills, type SkillRow } from "./requests";
import { SkillBadges, SkillDocument } from "./SkillDocument";

const PAGE = 20;

export function SkillsView({ store }: { store: Store }) {
  const opened = useSignal<string | null>(null);
  const search = useSignal("");
  const offset = useSignal(0);
  return (
    <section class="view">
      <ViewHeader title={TEXTS.skills.title} hint={TEXTS.skills.hint} />
      {opened.value === null ? (
        <SkillList store={store} search={search} offset={offset} open={(name) => (opened.value = name)} />
      ) : (
        <SkillDocument store={store} name={opened.value} close={() => (opened.value = null)} />
      )}
    </section>
  );
}

interface ListProps {
  store: Store;
  search: Signal<string>;
  offset: Signal<number>;
  open: (name: string) => void;
}

function SkillList({ store, search, offset, open }: ListProps) {
  const loaded = useLoaded(() => loadSkills(store, search.value, offset.value, PAGE), [search.value, offset.value]);
  const page = loaded.value;
  const find = (text: string) => {
    search.value = text;
    offset.value = 0;
  };
  return (
    <>
      <SearchField label={TEXTS.skills.search} text={search.value} find={find} />
      <LoadStatus loaded={loaded} />
      {page && (
        <p class="soft" role="status">
          {page.meta.total === 0
            ? search.value ? TEXTS.skills.noneFound : TEXTS.skills.none
            : TEXTS.skills.shown(page.meta.offset + 1, page.meta.offset + page.skills.length, page.meta.total)}
        </p>
      )}
      <ul class="entries">
        {page?.skills.map((skill) => (
          <SkillCard key={skill.name} skill={skill} open={open} />
        ))}
      </ul>
      {page && page.meta.total > PAGE && (
        <nav class="pages" aria-label={TEXTS.views.pages}>
          <button type="button" class="button" disabled={offset.value === 0} onClick={() => (offset.value -= PAGE)}>
            {TEXTS.views.previous}
          </button>
          <button
            type="button"
            class="button"
            disabled={offset.value + PAGE >= page.meta.total}
            onClick={() => (offset.value += PAGE)}
          >
            {TEXTS.views.next}
          </button>
        </nav>
      )}
    </>
  );
}

function SkillCard({ skill, open }: { skill: SkillRow; open: (name: string) => void }) {
  return (
    <li class="card entry">
      <h3 class="entry-title">
        <button type="button" class="link" onClick={() => open(skill.name)}>{skill.name}</button>{" "}
        <SkillBadges skill={skill} />
      </h3>
      <p>{clean(skill.description)}</p>
    </li>
  );
}
