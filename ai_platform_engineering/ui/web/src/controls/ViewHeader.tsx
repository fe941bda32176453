import type { ComponentChildren } from "preact";

interface Props {
  title: string;
  hint: string;
  /** Buttons beside the title. */
  children?: ComponentChildren;
}

export function ViewHeader({ title, hint, children }: Props) {
  return (
    <header class="view-header">
      <div>
        <h2>{title}</h2>
        <p class="soft">{hint}</p>
      </div>
      {children}
    </header>
  );
}
