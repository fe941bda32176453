// A text input of one line. Credentials are not readable in it.

import type { InputHTMLAttributes } from "preact";

interface Props {
  attributes: Pick<
    InputHTMLAttributes<HTMLInputElement>,
    "id" | "class" | "aria-describedby" | "aria-invalid" | "aria-required"
  >;
  secret: boolean;
  mode: "text" | "decimal" | "url" | "email";
  value: string;
  change: (value: string) => void;
}

export function LineInput({ attributes, secret, mode, value, change }: Props) {
  const common = {
    ...attributes,
    dir: "auto",
    autoComplete: "off",
    autoCapitalize: "off",
    spellcheck: false,
    inputMode: mode,
    value,
    onInput: (event: { currentTarget: HTMLInputElement }) => change(event.currentTarget.value),
  } as const;
  return secret ? <input {...common} type="password" /> : <input {...common} type="text" />;
}
