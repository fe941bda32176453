// A part that folds away. Its content is rendered only while it is open.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

interface Props {
  summary: ComponentChildren;
  /** Whether it is open at first. A change opens or folds it. */
  open?: boolean;
  children: ComponentChildren;
}

export function Fold({ summary, open = false, children }: Props) {
  const isOpen = useSignal(open);
  useEffect(() => {
    isOpen.value = open;
  }, [open]);
  return (
    <details class="fold" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen.value && children}
    </details>
  );
}
