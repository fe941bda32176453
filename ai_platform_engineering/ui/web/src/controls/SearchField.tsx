import { useSignal } from "@preact/signals";

import { TEXTS } from "../texts";

interface Props {
  label: string;
  /** The text that was searched for. */
  text: string;
  find: (text: string) => void;
}

/** A search that starts with Enter or its button. Clearing the field ends it. */
export function SearchField({ label, text, find }: Props) {
  const typed = useSignal(text);
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        find(typed.value.trim());
      }}
    >
      <input
        class="input"
        type="search"
        aria-label={label}
        placeholder={label}
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          if (typed.value === "") find("");
        }}
      />
      <button class="button">{TEXTS.views.search}</button>
    </form>
  );
}
