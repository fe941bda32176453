// The languages that the page colors, by the names that fences use. The grammars are in highlighting.ts, loaded on demand.

const NAMES = {
  bash: ["bash", "sh", "zsh"],
  diff: ["diff", "patch"],
  dockerfile: ["dockerfile", "docker"],
  go: ["go", "golang"],
  hcl: ["hcl", "terraform", "tf", "tfvars"],
  ini: ["ini", "toml", "conf", "env", "properties"],
  json: ["json", "jsonc", "json5", "jsonl"],
  makefile: ["makefile", "make", "mk"],
  nginx: ["nginx"],
  python: ["python", "py", "python3"],
  shell: ["shell", "console", "shellsession"],
  sql: ["sql", "postgresql", "sqlite"],
  yaml: ["yaml", "yml"],
} as const;

export type Grammar = keyof typeof NAMES;

const GRAMMARS: ReadonlyMap<string, Grammar> = new Map(
  Object.entries(NAMES).flatMap(([grammar, names]) => names.map((name) => [name, grammar as Grammar] as const)),
);

export function grammarOf(language: string): Grammar | null {
  return GRAMMARS.get(language) ?? null;
}

export function canHighlight(language: string): boolean {
  return GRAMMARS.has(language);
}
