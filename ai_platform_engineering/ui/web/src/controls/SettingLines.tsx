// Lines for the file .env or for a terminal, to copy.

import { CopyButton } from "../clipboard";

export function SettingLines({ lines, label }: { lines: readonly string[]; label: string }) {
  const text = lines.join("\n");
  return (
    <div class="setting-lines" role="group" aria-label={label}>
      <pre tabIndex={0}><code>{text}</code></pre>
      <CopyButton text={`${text}\n`} />
    </div>
  );
}
