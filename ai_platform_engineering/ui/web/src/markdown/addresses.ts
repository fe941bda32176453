// Which addresses in a text may become links or pictures.

import { decoded } from "./clean_text";

const SCHEMES: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);
const PICTURE = /\.(?:avif|gif|jpe?g|png|svg|webp)$/i;
const MAX_LENGTH = 2000;

/** The address of a link, or null if the page must not link there. Relative addresses have no meaning in an answer. */
export function linkTarget(written: string): string | null {
  const address = parsed(decoded(written));
  return address !== null && SCHEMES.has(address.protocol) ? address.href : null;
}

/**
 * The address of a picture that the supervisor serves, or null. `base` is the address of the page; everything the
 * supervisor serves is below it, also behind a proxy with a path prefix.
 */
export function pictureSource(written: string, base: string): string | null {
  const folder = new URL(".", base);
  const address = parsed(decoded(written), folder);
  if (address === null || address.username !== "" || address.password !== "") return null;
  const isServed = address.origin === folder.origin && address.pathname.startsWith(folder.pathname);
  return isServed && PICTURE.test(address.pathname) ? address.href : null;
}

/** The host of `target` where the text of the link names another one, else null. */
export function hiddenHost(text: string, target: string): string | null {
  const shown = /^\s*(?:https?:\/\/)?([\w-]+(?:\.[\w-]+)+)(?:[/?#:]\S*)?\s*$/i.exec(text)?.[1];
  const host = parsed(target)?.hostname;
  if (!shown || !host) return null;
  const isFileName = !/^\s*https?:/i.test(text) && !text.includes("/") && !/\.(?:com|org|net|io|dev)$/i.test(shown);
  return isFileName || shown.toLowerCase() === host ? null : host;
}

function parsed(address: string, base?: URL): URL | null {
  if (address.length > MAX_LENGTH) return null;
  try {
    return new URL(address, base);
  } catch {
    return null;
  }
}
