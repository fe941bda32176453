// A part of a form that opens below its buttons. It takes the focus, and Escape closes it.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  close: () => void;
  children: ComponentChildren;
}

export function FormPart({ title, close, children }: Props) {
  const heading = useId();
  const part = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = part.current;
    const opener = document.activeElement;
    // After a reload the part is open from the start, and the focus stays where it is.
    if (!(opener instanceof HTMLElement) || opener === document.body) return;
    element?.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
    return () => {
      if (element?.contains(document.activeElement)) opener.focus();
    };
  }, []);
  return (
    <div
      class="form-part"
      role="group"
      aria-labelledby={heading}
      ref={part}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.isComposing) return;
        event.stopPropagation();
        close();
      }}
    >
      <h4 id={heading} class="form-part-title">{title}</h4>
      {children}
    </div>
  );
}
