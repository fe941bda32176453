// A part of a form that opens below its buttons. It takes the focus and gives it back; Escape closes it.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { TEXTS } from "../texts";

interface Props {
  title: string;
  busy: boolean;
  close: () => void;
  /** The button that decides. */
  action: ComponentChildren;
  children: ComponentChildren;
}

export function FormPart({ title, busy, close, action, children }: Props) {
  const id = useId();
  const part = useRef<HTMLDivElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const opener = useRef<Element | null>(null);
  useEffect(() => {
    opener.current = document.activeElement;
    // After a reload the part is open from the start, and the focus stays where it is.
    if (opener.current === document.body) return;
    const first = part.current?.querySelector<HTMLElement>("input, textarea, select") ?? heading.current;
    first?.focus();
  }, []);
  const leave = () => {
    close();
    if (opener.current instanceof HTMLElement) opener.current.focus();
  };
  return (
    <div
      class="form-part"
      role="group"
      aria-labelledby={id}
      ref={part}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.isComposing) return;
        event.stopPropagation();
        leave();
      }}
    >
      <h4 id={id} class="form-part-title" tabIndex={-1} ref={heading}>{title}</h4>
      {children}
      <div class="form-buttons">
        {action}
        <button type="button" class="button" disabled={busy} onClick={leave}>{TEXTS.forms.back}</button>
      </div>
    </div>
  );
}
