// A document in place of the list that it was opened from.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  /** The label of the button that goes back to the list. */
  back: string;
  close: () => void;
  children: ComponentChildren;
}

export function Reader({ title, back, close, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [title]);
  return (
    <article class="reader">
      <button type="button" class="button small" onClick={close}>← {back}</button>
      <h3 ref={heading} tabIndex={-1}>{title}</h3>
      {children}
    </article>
  );
}
