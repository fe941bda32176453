// Cleaning of untrusted text, as `clean` in utils/characters.py does it for the terminal.

/** Controls, and invisible characters that could reorder or hide text; newlines, tabs and joiners stay. */
const UNSAFE =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;
const BROKEN = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const SUSPECT =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufff9-\ufffb]/;
const REFERENCE = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z]{2,8}));/g;

/** The named character references that models and documents use. Others stay as they are written. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
  ["nbsp", "\u00a0"],
  ["ndash", "–"],
  ["mdash", "—"],
  ["hellip", "…"],
  ["laquo", "«"],
  ["raquo", "»"],
  ["lsquo", "‘"],
  ["rsquo", "’"],
  ["ldquo", "“"],
  ["rdquo", "”"],
  ["bull", "•"],
  ["middot", "·"],
  ["times", "×"],
  ["larr", "←"],
  ["rarr", "→"],
  ["le", "≤"],
  ["ge", "≥"],
  ["ne", "≠"],
  ["deg", "°"],
  ["copy", "©"],
  ["reg", "®"],
  ["trade", "™"],
  ["euro", "€"],
]);

export function clean(text: string): string {
  // Most texts need no cleaning, and one class of characters is found faster than the expressions below.
  if (!SUSPECT.test(text)) return text;
  return text.replace(/\r\n?/g, "\n").replace(UNSAFE, "").replace(BROKEN, "\ufffd");
}

/** Text with its character references decoded. Cleaned, because a reference can stand for a control character. */
export function decoded(text: string): string {
  return clean(text.replace(REFERENCE, character));
}

function character(written: string, decimal?: string, hexadecimal?: string, name?: string): string {
  if (name !== undefined) return NAMED.get(name) ?? written;
  const code = decimal !== undefined ? Number.parseInt(decimal, 10) : Number.parseInt(hexadecimal ?? "", 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
}

/** `text` up to about `length`, without half of a character. */
export function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
