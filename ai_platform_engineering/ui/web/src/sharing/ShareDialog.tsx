// The dialog in which the owner chooses the groups that a conversation is shared with.

import { useSignal, type Signal } from "@preact/signals";
import { useId } from "preact/hooks";

import { Dialog } from "../controls/Dialog";
import { ChoiceList } from "../forms/ChoiceList";
import { visible } from "../forms/visible_text";
import { TEXTS } from "../texts";

/** The limits of the supervisor. */
const MAX_GROUPS = 20;
const MAX_NAME_LENGTH = 200;

interface Props {
  /** The groups that the person is in. */
  own: readonly string[];
  shared: readonly string[];
  /** Resolves to a sentence if the groups were not saved. */
  save: (groups: readonly string[]) => Promise<string | null>;
  close: () => void;
}

export function ShareDialog({ own, shared, save, close }: Props) {
  const id = useId();
  const options = useSignal<readonly string[]>([...new Set([...own, ...shared])]);
  const chosen = useSignal<readonly string[]>(shared);
  const typed = useSignal("");
  const isBusy = useSignal(false);
  const problem = useSignal<string | null>(null);
  /** Adds the typed group, if there is one. */
  const add = () => {
    const group = typed.value.trim();
    if (!group) return;
    options.value = [...new Set([...options.value, group])];
    chosen.value = [...new Set([...chosen.value, group])];
    typed.value = "";
  };
  const send = async (groups: readonly string[]) => {
    if (isBusy.value) return;
    // Cleared first: screen readers announce the same sentence again.
    problem.value = null;
    if (groups.length > MAX_GROUPS) {
      problem.value = TEXTS.sharing.tooMany(MAX_GROUPS);
      return;
    }
    isBusy.value = true;
    const sentence = await save(groups);
    isBusy.value = false;
    if (sentence === null) close();
    else problem.value = TEXTS.sharing.failed(sentence);
  };
  return (
    <Dialog title={TEXTS.sharing.title} busy={isBusy.value} close={close}>
      <form
        class="share-form"
        onSubmit={(event) => {
          event.preventDefault();
          add();
          void send(chosen.value);
        }}
      >
        <p class="soft">{TEXTS.sharing.hint}</p>
        <fieldset class="share-groups">
          <legend>{TEXTS.sharing.groups}</legend>
          {options.value.length === 0 && <p class="soft">{TEXTS.sharing.none}</p>}
          {options.value.length > 0 && (
            <ChoiceList
              id={id}
              label={TEXTS.sharing.groups}
              options={options.value}
              chosen={chosen.value}
              multiple
              change={(groups) => (chosen.value = groups)}
            />
          )}
        </fieldset>
        <AnotherGroup typed={typed} add={add} />
        <p class="problem" role="alert">{problem.value}</p>
        <div class="form-buttons">
          <button class="button primary" aria-disabled={isBusy.value}>
            {isBusy.value ? TEXTS.sharing.saving : TEXTS.sharing.save}
          </button>
          <button type="button" class="button" disabled={isBusy.value} onClick={close}>{TEXTS.sharing.cancel}</button>
          {shared.length > 0 && (
            <button
              type="button"
              class="button danger share-stop"
              aria-disabled={isBusy.value}
              onClick={() => void send([])}
            >
              {TEXTS.sharing.stop}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

/** The field for a group by its name. Enter adds it; with an empty field, Enter saves. */
function AnotherGroup({ typed, add }: { typed: Signal<string>; add: () => void }) {
  const id = useId();
  const added = useSignal("");
  const addTyped = () => {
    const group = typed.value.trim();
    add();
    if (group) added.value = TEXTS.sharing.added(visible(group));
  };
  return (
    <div class="share-another">
      <label for={id}>{TEXTS.sharing.another}</label>
      <div class="share-name">
        <input
          id={id}
          class="input"
          type="text"
          dir="auto"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          maxLength={MAX_NAME_LENGTH}
          aria-describedby={`${id}-hint`}
          value={typed.value}
          onInput={(event) => (typed.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.isComposing || !typed.value.trim()) return;
            event.preventDefault();
            addTyped();
          }}
        />
        <button type="button" class="button" onClick={addTyped}>{TEXTS.sharing.add}</button>
      </div>
      <p id={`${id}-hint`} class="field-hint">{TEXTS.sharing.anotherHint}</p>
      <p class="field-hint" role="status">{added.value}</p>
    </div>
  );
}
