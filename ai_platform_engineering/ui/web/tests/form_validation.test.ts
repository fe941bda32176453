import assert from "node:assert/strict";
import { test } from "node:test";

import type { FieldValue, FormField } from "../src/events";
import { fillIn, hasHiddenProposal, initialEntry, type Entry } from "../src/forms/entries";
import { isSecret, labelOf, withLabels } from "../src/forms/field_names";
import { expected, validated } from "../src/forms/validation";
import { visible } from "../src/forms/visible_text";

function field(type: NonNullable<FormField["field_type"]>, more: Partial<FormField> = {}): FormField {
  return { field_name: "it", field_type: type, ...more };
}

function value(asked: FormField, entry: Entry): FieldValue | undefined {
  const outcome = fillIn({ form_id: "f", title: "", fields: [asked] }, { it: entry });
  return outcome.ok ? outcome.values["it"] : undefined;
}

function error(asked: FormField, entry: Entry): string | undefined {
  const outcome = fillIn({ form_id: "f", title: "", fields: [asked] }, { it: entry });
  return outcome.ok ? undefined : outcome.errors["it"];
}

test("numbers are sent only if they were understood", () => {
  const replicas = field("number", { rules: { integer: true, minimum: 1, maximum: 5 } });
  assert.equal(value(replicas, " 3 "), 3);
  assert.equal(value(replicas, "3.0"), 3);
  for (const entry of ["0", "6", "2.5", "2,5", "3 pods", "0x3", "three", "NaN", "1e999"]) {
    assert.equal(value(replicas, entry), undefined, entry);
  }
  assert.equal(error(replicas, "6"), "Please enter a whole number from 1 to 5; “6” is not that.");
  assert.match(error(field("number"), "2,5") ?? "", /Write decimals with a point/);
});

test("a number with more digits than a double has is sent as it was typed", () => {
  assert.equal(value(field("number", { rules: { integer: true } }), "12345678901234567890"), "12345678901234567890");
  assert.equal(value(field("number"), "0.1"), 0.1);
  assert.equal(value(field("number"), "0.12345678901234567890"), "0.12345678901234567890");
});

test("lengths count characters and patterns cover the whole text", () => {
  const name = field("text", { rules: { max_length: 3, pattern: "[a-z]+" } });
  assert.equal(value(name, "abc"), "abc");
  assert.match(error(name, "abcd") ?? "", /has 4/);
  assert.match(error(name, "a1") ?? "", /does not/);
  assert.equal(value(field("text", { rules: { max_length: 2 } }), "👩🚀"), "👩🚀");
});

test("patterns that JavaScript may read otherwise are left to the supervisor", () => {
  for (const pattern of ["(?i)abc", "(?P<x>a)", "\\Aabc\\Z", "(?<x>q)", "["]) {
    assert.equal(value(field("text", { rules: { pattern } }), "zzz"), "zzz", pattern);
  }
  assert.equal(value(field("text", { rules: { pattern: "\\w+" } }), "größe"), "größe");
});

test("addresses and e-mail addresses are checked without the space around them", () => {
  assert.equal(value(field("url"), " https://example.com/a?b "), "https://example.com/a?b");
  for (const entry of ["example.com", "ftp://example.com", "javascript:alert(1)", "https://", "https://a b"]) {
    assert.equal(value(field("url"), entry), undefined, entry);
  }
  assert.equal(value(field("email"), " a@example.com"), "a@example.com");
  for (const entry of ["a@b", "a b@example.com", "@example.com"]) assert.equal(value(field("email"), entry), undefined);
});

test("empty fields are null, and required ones have an error unless a value is proposed", () => {
  assert.equal(value(field("text", { required: false }), " "), null);
  assert.equal(error(field("text"), ""), "This field is required.");
  assert.equal(error(field("number"), ""), "This field is required.");
  assert.equal(value(field("text", { value: "demo" }), ""), null);
  assert.equal(error(field("number", { value: "many" }), ""), "This field is required.");
});

test("booleans differ from no answer", () => {
  assert.equal(value(field("boolean"), "no"), false);
  assert.equal(value(field("boolean", { required: false }), ""), null);
  assert.equal(error(field("boolean"), ""), "This field is required.");
  assert.equal(initialEntry(field("boolean", { default_value: false })), "no");
  assert.equal(initialEntry(field("boolean", { value: "TRUE" })), "yes");
  assert.equal(initialEntry(field("boolean")), "");
});

test("options are chosen as they are listed", () => {
  const size = field("select", { field_values: ["Small", "Large", "Large", " "] });
  assert.equal(initialEntry({ ...size, value: "large" }), "Large");
  assert.equal(initialEntry({ ...size, value: "huge" }), "");
  assert.equal(value(size, "Small"), "Small");
  assert.equal(expected(size), "one of Small, Large");
  assert.equal(initialEntry(field("select", { field_values: ["1", "2"], value: 2 })), "2");
});

test("deselecting every option is an answer", () => {
  const teams = field("multiselect", { field_values: ["a", "b"], required: false });
  assert.deepEqual(value(teams, ["b"]), ["b"]);
  assert.equal(value(teams, []), null);
  assert.deepEqual(value({ ...teams, value: ["a"] }, []), []);
  assert.match(error({ ...teams, required: true, value: ["a"] }, []) ?? "", /required/);
  assert.deepEqual(initialEntry({ ...teams, value: "A, b" }), ["a", "b"]);
});

test("a multiselect without options takes lines or commas", () => {
  const labels = field("multiselect");
  assert.deepEqual(value(labels, "one\n two \n"), ["one", "two"]);
  assert.deepEqual(value(labels, "one, two"), ["one", "two"]);
  assert.equal(initialEntry({ ...labels, value: ["one", "two"] }), "one\ntwo");
});

test("unknown types are text", () => {
  const odd = { field_name: "it", field_type: "hologram" } as unknown as FormField;
  assert.equal(value(odd, " as typed "), " as typed ");
});

test("a proposed credential and one with hidden characters are kept, not shown", () => {
  const token: FormField = { field_name: "api_token", value: "s3cret" };
  assert.equal(initialEntry(token), "");
  assert.ok(hasHiddenProposal(token));
  const bidi = field("text", { value: "a\u202eb" });
  assert.equal(initialEntry(bidi), "");
  assert.ok(hasHiddenProposal(bidi));
  assert.ok(!hasHiddenProposal(field("text", { value: "plain" })));
});

test("an invalid default is not proposed, an invalid earlier entry is", () => {
  assert.equal(initialEntry(field("number", { default_value: "many" })), "");
  assert.equal(initialEntry(field("number", { value: "many" })), "many");
});

test("a credential is not repeated in a sentence", () => {
  const outcome = validated({ field_name: "api_token", rules: { max_length: 3 } }, "s3cret");
  assert.ok(!outcome.ok && !outcome.sentence.includes("s3cret"));
});

test("names that mean credentials", () => {
  for (const name of ["api_key", "apiKey", "API key", "password", "db_password", "GITHUB_PAT", "access_token"]) {
    assert.ok(isSecret(name), name);
  }
  for (const name of ["key", "issue_key", "project_key", "token_url", "secret_name", "path", "monkey"]) {
    assert.ok(!isSecret(name), name);
  }
});

test("labels are words, also in the supervisor's sentences", () => {
  assert.equal(labelOf("repository_name"), "Repository name");
  assert.equal(labelOf("Repository Name"), "Repository Name");
  assert.equal(labelOf("repoName"), "repoName");
  assert.equal(withLabels("`repo_name` is required.", [{ field_name: "repo_name" }]), "“Repo name” is required.");
});

test("hidden characters are shown as codes", () => {
  assert.equal(visible("a\u202eb\u200bc\u0007"), "a\\u{202e}b\\u{200b}c\\u{7}");
  assert.equal(visible("line\n\ttab"), "line\n\ttab");
  assert.equal(visible("pr\u200dod"), "pr\\u{200d}od");
  assert.equal(visible("👩\u200d🚀"), "👩\u200d🚀");
  assert.equal(visible("\ud800x"), "\\u{d800}x");
});
