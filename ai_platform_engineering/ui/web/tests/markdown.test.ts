import assert from "node:assert/strict";
import { test } from "node:test";

import { hiddenHost, linkTarget, pictureSource } from "../src/markdown/addresses";
import { advance, blocksOf, MAX_BLOCK, MAX_LENGTH, NOTHING_PARSED, type Parsed } from "../src/markdown/blocks";
import { clean, decoded, shortened } from "../src/markdown/clean_text";
import { piecesOf } from "../src/markdown/PlainText";

const ANSWER = `# Report

Some *text* with [a link][1].
And more.

- one

- two
  - inner

  continued

| a | b |
|---|---|
| 1 | 2 |

## Code

\`\`\`yaml
a: 1

b: 2
\`\`\`

> quote
lazy

[1]: https://example.com/one

    indented

    code

Title
=====
1. first
2. second

<div>

raw

</div>
`;

/** Every step until the text was parsed. */
function parse(text: string, streaming = false, from = NOTHING_PARSED): Parsed {
  let parsed = advance(from, text, streaming);
  while (!parsed.complete) parsed = advance(parsed, text, streaming);
  return parsed;
}

const summary = (parsed: Parsed) =>
  blocksOf(parsed).map(({ key, token, finished, level }) => ({ key, token, finished, level }));

test("text that arrives in deltas of any length gives the blocks of the whole text", () => {
  const whole = summary(parse(ANSWER));
  for (const length of [1, 7, 40]) {
    let parsed = NOTHING_PARSED;
    for (let end = length; end < ANSWER.length + length; end += length) {
      parsed = parse(ANSWER.slice(0, end), true, parsed);
    }
    assert.deepEqual(summary(parse(ANSWER, false, parsed)), whole);
  }
});

test("a finished block is the same object after more text", () => {
  const before = parse("# One\n\nTwo\n\nThr", true);
  const after = parse("# One\n\nTwo\n\nThree and four", true, before);
  assert.equal(after.finished[0], before.finished[0]);
  assert.equal(after.finished[1], before.finished[1]);
  assert.equal(after.open?.key, before.open?.key);
});

test("another text starts from the beginning", () => {
  const before = parse("# One\n\nTwo", true);
  assert.deepEqual(summary(parse("Three", false, before)), summary(parse("Three")));
});

test("a link that is defined after its use works when the text is complete", () => {
  const parsed = parse("See [the docs].\n\nMore.\n\n[the docs]: https://example.com/docs");
  const first = parsed.finished[0]?.token;
  assert.ok(first?.type === "paragraph" && first.tokens.some((token) => token.type === "link"));
});

test("levels of headings are never skipped", () => {
  const levels = blocksOf(parse("## a\n\n#### b\n\n### c\n\n# d\n\n###### e")).map((block) => block.level);
  assert.deepEqual(levels, [3, 4, 4, 3, 4]);
});

test("a long text is cut, and no step looks at all of it", () => {
  const parsed = parse("word\n\n".repeat(30_000));
  assert.ok(parsed.cut);
  assert.ok(parsed.prefix.length <= MAX_LENGTH);
  const first = advance(NOTHING_PARSED, "word\n\n".repeat(1500), false);
  assert.ok(!first.complete && first.reached < 9000);
});

test("a long list is cut as well, a long block of code is not", () => {
  const items = parse("- item\n".repeat(6000));
  assert.ok(items.cut && items.reached < 2 * MAX_BLOCK);
  const code = parse(`\`\`\`\n${"line\n".repeat(6000)}\`\`\`\n`);
  assert.ok(!code.cut && code.finished.length === 1);
});

test("hostile nesting costs little and stays text", () => {
  const hostile = [
    ">".repeat(5000),
    "- ".repeat(2500),
    "[".repeat(5000),
    "*a **b ".repeat(2000),
    "![](".repeat(5000),
    "<a ".repeat(5000),
    Array.from({ length: 150 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n"),
    Array.from({ length: 150 }, (_, depth) => `${"> ".repeat(depth)}x`).join("\n"),
    "a ".repeat(500_000),
    `|a|b|\n|-|-|\n${"|1|2|\n".repeat(100_000)}`,
  ];
  for (const text of hostile) {
    const before = process.cpuUsage();
    parse(text);
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 2_000_000, `${text.slice(0, 12)} took ${(user + system) / 1000} ms`);
  }
});

test("text is cleaned as the terminal cleans it", () => {
  assert.equal(clean("a\u202eb\u2066c\u0007\u001b[31m\r\nd\te"), "abc[31m\nd\te");
  assert.equal(clean("x\ud83dy\u{1f600}"), "x\ufffdy\u{1f600}");
  assert.equal(decoded("&lt;b&gt; &amp; &#x41;&#66; &#x202e;x &unknown; &#0;"), "<b> & AB x &unknown; \ufffd");
  // The lexer decodes some references itself.
  assert.equal(decoded("a\u202eb"), "ab");
  assert.equal(shortened("ab\u{1f600}", 3), "ab");
});

test("only http, https and mailto become links", () => {
  assert.equal(linkTarget("https://example.com/a?b&amp;c"), "https://example.com/a?b&c");
  assert.equal(linkTarget("mailto:team@example.com"), "mailto:team@example.com");
  const others = [
    "javascript:alert(1)",
    "JaVaScRiPt&colon;alert(1)",
    "javascript&#58;alert(1)",
    " \u0001javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:x",
    "file:///etc/passwd",
    "blob:https://example.com/1",
    "//example.com",
    "page.html",
    "#part",
    "",
    `https://example.com/${"a".repeat(3000)}`,
  ];
  for (const one of others) assert.equal(linkTarget(one), null, one);
});

test("only pictures that the supervisor serves are loaded", () => {
  const base = "https://host.example/platform/?a=b#c";
  assert.equal(pictureSource("pictures/a.png", base), "https://host.example/platform/pictures/a.png");
  const others = [
    "https://evil.example/a.png",
    "//evil.example/a.png",
    "/\\evil.example/a.png",
    "\\\\evil.example\\a.png",
    "http://host.example/platform/a.png",
    "https://host.example@evil.example/platform/a.png",
    "https://user@host.example/platform/a.png",
    "../other/a.png",
    "/other/a.png",
    "pictures/%2e%2e/%2e%2e/other/a.png",
    "v1/tasks/1:subscribe",
    "v1/tasks?a.png",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)//a.png",
  ];
  for (const one of others) assert.equal(pictureSource(one, base), null, one);
});

test("a link whose text names another host shows its own", () => {
  assert.equal(hiddenHost("https://github.com/login", "https://evil.example/login"), "evil.example");
  assert.equal(hiddenHost("github.com", "https://evil.example/"), "evil.example");
  assert.equal(hiddenHost("https://GitHub.com/a", "https://github.com/b"), null);
  assert.equal(hiddenHost("rollback.md", "https://git.example/rollback.md"), null);
  assert.equal(hiddenHost("the runbook", "https://git.example/rollback.md"), null);
});

test("plain text is split at lines", () => {
  const text = `${"line\n".repeat(5000)}${"x".repeat(30_000)}`;
  const pieces = piecesOf(text);
  assert.equal(pieces.join(""), text);
  assert.ok(pieces[0]?.endsWith("\n"));
  assert.ok(pieces.every((piece) => piece.length <= 10_000));
});
