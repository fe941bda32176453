// The one place where a string becomes HTML of the page. Its only callers have HTML of a library, never of a text:
// Markdown is rendered as elements. Trusted Types reject every other way.

import DOMPurify from "dompurify";

export interface SafeHtml {
  __html: string;
}

/** The spans with classes in `html`; everything else is removed. */
export function safeSpans(html: string): SafeHtml {
  const trusted = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: ["span"],
    ALLOWED_ATTR: ["class"],
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    RETURN_TRUSTED_TYPE: true,
  });
  // Preact hands the object on to `innerHTML` unchanged; its types know only strings.
  return { __html: trusted as unknown as string };
}
