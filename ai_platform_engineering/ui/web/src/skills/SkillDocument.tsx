// One skill: its instructions, its files, where it comes from, and a field to use it.

import { useSignal } from "@preact/signals";

import { askInNewConversation } from "../controls/asking";
import { Fold } from "../controls/Fold";
import { LoadStatus, useLoaded } from "../controls/loading";
import { Reader } from "../controls/Reader";
import { clean } from "../markdown/clean_text";
import { Markdown } from "../markdown/Markdown";
import { PlainText } from "../markdown/PlainText";
import type { Store } from "../store";
import { TEXTS } from "../texts";
import { loadSkill, type SkillDetail, type SkillRow } from "./requests";

export function SkillDocument({ store, name, close }: { store: Store; name: string; close: () => void }) {
  const loaded = useLoaded(() => loadSkill(store, name), [name]);
  const skill = loaded.value;
  return (
    <Reader title={name} back={TEXTS.skills.back} close={close}>
      <LoadStatus loaded={loaded} />
      {skill && (
        <>
          <p class="badges"><SkillBadges skill={skill} /></p>
          <p>{clean(skill.description)}</p>
          <UseForm store={store} name={name} />
          <Facts skill={skill} />
          <div class="card document">
            <Markdown text={skill.instructions} />
          </div>
          {Object.entries(skill.contents ?? {}).map(([path, text]) => (
            <Fold key={path} summary={<code>{path}</code>}>
              <PlainText text={text} />
            </Fold>
          ))}
        </>
      )}
    </Reader>
  );
}

export function SkillBadges({ skill }: { skill: SkillRow }) {
  return (
    <>
      <span class="badge off">{TEXTS.skills.sources[skill.source]}</span>{" "}
      <span class="badge">{TEXTS.skills.visibility[skill.visibility](skill.team ?? "")}</span>
      {skill.tags.map((tag) => (
        <span key={tag} class="badge off">{clean(tag)}</span>
      ))}
    </>
  );
}

/** A slash and the name of a skill use it, with the text after it as the subject. */
function UseForm({ store, name }: { store: Store; name: string }) {
  const subject = useSignal("");
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        askInNewConversation(store, `/${name} ${subject.value}`.trim());
      }}
    >
      <input
        class="input"
        aria-label={TEXTS.skills.subject}
        placeholder={TEXTS.skills.subject}
        value={subject.value}
        onInput={(event) => (subject.value = event.currentTarget.value)}
      />
      <button class="button primary">{TEXTS.skills.use}</button>
    </form>
  );
}

function Facts({ skill }: { skill: SkillDetail }) {
  const facts: [string, string | null][] = [
    [TEXTS.skills.origin, skill.origin],
    [TEXTS.skills.added, whenAndWho(skill.added_at, skill.added_by)],
    [TEXTS.skills.updated, whenAndWho(skill.updated_at, skill.updated_by)],
    [TEXTS.skills.license, skill.license],
    [TEXTS.skills.compatibility, skill.compatibility],
    ...skill.overrides.map(
      (hidden): [string, string] => [TEXTS.skills.overrides(TEXTS.skills.sources[hidden.source]), hidden.reason],
    ),
  ];
  return (
    <dl class="facts">
      {facts.map(([label, value]) => value && (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{clean(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function whenAndWho(at: string | null, by: string | null): string | null {
  const parts = [at && new Date(at).toLocaleString(), by];
  return parts.filter(Boolean).join(" · ") || null;
}
