// Names of form fields: labels for people, and names that say that the value is a credential (forms/field_names.py).

import type { FormField } from "../events";

export const MASK = "***";

const WORD = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+/g;
const SECRET_WORDS = new Set([
  "TOKEN",
  "KEY",
  "SECRET",
  "PASSWORD",
  "PASSWD",
  "PASSPHRASE",
  "CREDENTIAL",
  "CREDENTIALS",
  "PAT",
  "APIKEY",
]);
const PLAIN_ENDINGS = new Set(["URL", "URI", "ENDPOINT", "PATH", "FILE", "DIR", "NAME", "TYPE", "TIMEOUT", "TTL"]);
/** After these words, KEY is an identifier and not a credential: `issue_key`. */
const IDENTIFIED = new Set([
  "ISSUE",
  "PROJECT",
  "TICKET",
  "EPIC",
  "PARENT",
  "SPACE",
  "BOARD",
  "OBJECT",
  "PRIMARY",
  "PUBLIC",
]);

/** Whether the name of a field says that its value is a credential: `api_key`, `apiKey`, `API key`. */
export function isSecret(fieldName: string): boolean {
  const words = (fieldName.match(WORD) ?? []).map((word) => word.toUpperCase());
  const plain = words.filter((word, place) => word !== "KEY" || (place > 0 && !IDENTIFIED.has(words[place - 1] ?? "")));
  return !PLAIN_ENDINGS.has(plain.at(-1) ?? "") && plain.some((word) => SECRET_WORDS.has(word));
}

/** The name of a field as its label: `repository_name` is "Repository name"; other spellings stay as they are. */
export function labelOf(fieldName: string): string {
  if (!/^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/.test(fieldName)) return fieldName;
  return fieldName.replace(/_/g, " ").replace(/^./, (letter) => letter.toUpperCase());
}

/** A sentence of the supervisor with the labels of the fields in place of their quoted names. */
export function withLabels(sentence: string, fields: readonly FormField[]): string {
  return fields.reduce((text, { field_name: name }) => text.replaceAll(`\`${name}\``, () => `“${labelOf(name)}”`), sentence);
}
