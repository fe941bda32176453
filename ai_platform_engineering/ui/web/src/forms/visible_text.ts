// Text from tools and models for people who must see exactly what it contains: characters that hide, reorder or
// imitate other text are shown as their codes.

// Controls except line ends and tabs, directional controls, invisible characters, and halves of surrogate pairs.
const UNSAFE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}\ud800-\udfff]/gu;
// Joiners belong to words of some scripts and to emoji, but not between ASCII characters.
const JOINERS = /(?<=[\u0000-\u007f])[\u200c\u200d]|[\u200c\u200d](?=[\u0000-\u007f])/g;

export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(UNSAFE, code).replace(JOINERS, code);
}

/** Whether a person sees the whole text in an input. */
export function isVisible(text: string): boolean {
  return visible(text) === text;
}

function code(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
