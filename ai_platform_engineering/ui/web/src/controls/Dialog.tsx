// A modal dialog. It takes the focus and gives it back; Escape closes it.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  /** While it is busy, Escape does not close it. */
  busy: boolean;
  close: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, busy, close, children }: Props) {
  const id = useId();
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      // The browser does not give the focus back if the dialog is removed.
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => busy && event.preventDefault()}
      // The browser reports the close of a removed dialog later, when the next one can be open.
      onClose={() => element.current !== null && close()}
    >
      <h2 id={id} class="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}
