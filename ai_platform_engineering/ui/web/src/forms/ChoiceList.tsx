// Options to choose one or several of. A long list has a filter and shows the first matches.

import { useSignal } from "@preact/signals";

import { TEXTS } from "../texts";
import { visible } from "./visible_text";

const MAX_UNFILTERED = 10;
const MAX_SHOWN = 100;

interface Props {
  id: string;
  label: string;
  options: readonly string[];
  chosen: readonly string[];
  multiple: boolean;
  change: (chosen: readonly string[]) => void;
}

export function ChoiceList({ id, label, options, chosen, multiple, change }: Props) {
  const filter = useSignal("");
  const wanted = filter.value.trim().toLowerCase();
  const matching = options.filter((option) => option.toLowerCase().includes(wanted));
  const hidden = Math.max(matching.length - MAX_SHOWN, 0);
  const set = (option: string, isChosen: boolean) => {
    const others = multiple ? chosen.filter((other) => other !== option) : [];
    const next = isChosen ? [...others, option] : others;
    change(options.filter((known) => next.includes(known)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter") return;
    // Enter takes the only match; it does not submit the form.
    event.preventDefault();
    const [match, ...others] = matching;
    if (match === undefined || others.length > 0) return;
    set(match, true);
    filter.value = "";
  };
  return (
    <>
      {options.length > MAX_UNFILTERED && (
        <>
          <input
            class="input"
            type="search"
            aria-label={TEXTS.forms.filter(label)}
            placeholder={TEXTS.forms.filterHint}
            value={filter.value}
            onInput={(event) => (filter.value = event.currentTarget.value)}
            onKeyDown={onKeyDown}
          />
          <p class="field-hint" role="status">
            {chosen.length > 0 ? TEXTS.forms.chosen(chosen.map(visible).join(", ")) : TEXTS.forms.noneChosen}
          </p>
        </>
      )}
      <div class={options.length > MAX_UNFILTERED ? "choices boxed" : "choices"}>
        {matching.slice(0, MAX_SHOWN).map((option) => (
          <label key={option} class="choice">
            <input
              type={multiple ? "checkbox" : "radio"}
              name={id}
              checked={chosen.includes(option)}
              onChange={(event) => set(option, event.currentTarget.checked)}
            />{" "}
            <bdi>{visible(option)}</bdi>
          </label>
        ))}
        {matching.length === 0 && <p class="soft">{TEXTS.forms.noMatch}</p>}
        {hidden > 0 && <p class="soft">{TEXTS.forms.moreOptions(hidden)}</p>}
      </div>
    </>
  );
}
