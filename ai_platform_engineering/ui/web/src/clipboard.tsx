// Copying of text, also where the page has no secure origin and the browser therefore no clipboard interface.

import { useSignal } from "@preact/signals";

import { CopyIcon } from "./icons";
import { TEXTS } from "./texts";

const SHOWN_FOR_MS = 2000;

export function CopyButton({ text }: { text: string }) {
  const copied = useSignal(false);
  const copy = async () => {
    copied.value = await copyText(text);
    setTimeout(() => (copied.value = false), SHOWN_FOR_MS);
  };
  return (
    <button type="button" class="button plain small" onClick={() => void copy()}>
      <CopyIcon /> <span aria-live="polite">{copied.value ? TEXTS.chat.copied : TEXTS.chat.copy}</span>
    </button>
  );
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const field = document.createElement("textarea");
  field.className = "visually-hidden";
  field.value = text;
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } finally {
    field.remove();
  }
}
