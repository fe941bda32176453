// Colors for code, loaded when the first block of code is shown.

import type { LanguageFn } from "highlight.js";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import json from "highlight.js/lib/languages/json";
import makefile from "highlight.js/lib/languages/makefile";
import nginx from "highlight.js/lib/languages/nginx";
import python from "highlight.js/lib/languages/python";
import shell from "highlight.js/lib/languages/shell";
import sql from "highlight.js/lib/languages/sql";
import yaml from "highlight.js/lib/languages/yaml";

import { hcl } from "./hcl";
import { type Grammar, grammarOf } from "./languages";
import { type SafeHtml, safeSpans } from "./sanitizing";

const GRAMMARS: Record<Grammar, LanguageFn> = { bash, diff, dockerfile, go, hcl, ini, json, makefile, nginx, python, shell, sql, yaml };

for (const [name, language] of Object.entries(GRAMMARS)) hljs.registerLanguage(name, language);

/** `code` with colors, or null for a language that is not known. */
export function highlighted(code: string, language: string): SafeHtml | null {
  const grammar = grammarOf(language);
  if (grammar === null) return null;
  return safeSpans(hljs.highlight(code, { language: grammar, ignoreIllegals: true }).value);
}
