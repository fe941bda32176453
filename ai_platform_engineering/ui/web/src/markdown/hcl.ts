// HCL, the language of Terraform, for highlight.js, which has no grammar of it.

import type { HLJSApi, Language } from "highlight.js";

export function hcl(hljs: HLJSApi): Language {
  const interpolation = { scope: "subst", begin: /[$%]\{/, end: /\}/ };
  return {
    name: "HCL",
    keywords: {
      keyword: ["for", "in", "if", "else", "endif", "endfor", "dynamic"],
      literal: ["true", "false", "null"],
      type: ["string", "number", "bool", "list", "map", "set", "object", "tuple", "any"],
    },
    contains: [
      hljs.HASH_COMMENT_MODE,
      hljs.C_LINE_COMMENT_MODE,
      hljs.C_BLOCK_COMMENT_MODE,
      hljs.NUMBER_MODE,
      { scope: "string", begin: /"/, end: /"/, contains: [hljs.BACKSLASH_ESCAPE, interpolation] },
      { scope: "string", begin: /<<-?(\w+)$/, end: /^\s*\w+$/, contains: [interpolation] },
      { scope: "section", begin: /^\s*[a-z_]+(?=\s+(?:"[^"\n]*"\s*)*\{)/ },
      { scope: "attr", begin: /[A-Za-z_][\w-]*(?=\s*=[^=>])/ },
    ],
  };
}
