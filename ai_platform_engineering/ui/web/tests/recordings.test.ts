// Recordings in the page: reading, writing and playing them.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { RecordedLine } from "../src/events";
import { decodeLine, decodeRecording, encodeRecording, MAX_LINE_LENGTH, MAX_LINES, RecordingError } from "../src/developer/lines";
import { Playback } from "../src/developer/playback";

const ASKED = '{"event": "asked", "question": "open issues?"}';
const DELTA = '{"at": 0.5, "event": "text_delta", "agent": "supervisor", "message_id": "m1", "text": "None."}';
const RESULT = '{"at": 1, "event": "final_result", "text": "None.", "answer_message_id": "m1"}';

function problemOf(content: string): string {
  try {
    decodeRecording(content);
  } catch (error) {
    if (error instanceof RecordingError) return error.message;
    throw error;
  }
  return "";
}

test("an error names the line and the field", () => {
  assert.match(problemOf(`${ASKED}\n\nnot json`), /^Line 3: This is not JSON/);
  assert.match(problemOf("[]"), /^Line 1: This is not a JSON object/);
  assert.match(problemOf('{"event": "asked"}'), /asked event has a wrong “question”: it must be present/);
  assert.match(problemOf('{"event": "sung"}'), /"sung", is none of plan_updated, /);
  assert.match(problemOf('{"event": "canceled", "at": "now"}'), /“at”, "now", is not a number/);
  const step = '{"id": "1", "title": "x", "status": "done", "order": 0}';
  assert.match(problemOf(`{"event": "plan_updated", "steps": [${step}]}`), /“steps.0.status”: it must be "pending", /);
  assert.match(problemOf(" \n"), /^The file is empty/);
});

test("a file beyond the limits is refused with a sentence", () => {
  assert.match(problemOf(`${ASKED}\n`.repeat(MAX_LINES + 1)), /more than 50000 events/);
  assert.match(problemOf(`{"event": "asked", "question": "${"x".repeat(MAX_LINE_LENGTH)}"}`), /more than 1000000 char/);
  assert.match(problemOf("[".repeat(500_000)), /not JSON/);
});

test("unknown fields are dropped", () => {
  const line = decodeLine('{"event": "canceled", "by": "ann", "__proto__": {"polluted": true}, "onclick": "alert(1)"}');
  assert.deepEqual(Object.keys(line), ["event", "by"]);
  assert.equal("polluted" in line, false);
});

test("a downloaded run can be read again", () => {
  const events: RecordedLine[] = [
    { seq: 3, at: 0.50049, ...decodeLine(DELTA) },
    { seq: 4, at: 1, event: "input_required", forms: [{ form_id: "f1", title: "Name?" }] },
    { seq: 5, ...decodeLine(RESULT) },
  ];
  const decision = { form_id: "f1", at: "", by: null, kind: "values", values: { name: "demo", api_key: "s3cr3t" }, reason: null, always: false } as const;
  const lines = decodeRecording(encodeRecording("open issues?", events, [decision]));
  assert.deepEqual(lines.map((line) => line.event), ["asked", "text_delta", "input_required", "asked", "final_result"]);
  assert.deepEqual(lines[0], { at: 0, event: "asked", question: "open issues?" });
  assert.equal(lines[3]?.event === "asked" && lines[3].question, "name: demo\napi_key: ***");
  assert.ok(lines.every((line) => !("seq" in line)));
});

test("a position shows the same state from either direction", () => {
  const deltas = Array.from({ length: 1000 }, (_, number) => DELTA.replace("0.5", String(number / 100)));
  const playback = new Playback(decodeRecording([ASKED, ...deltas, RESULT.replace("1,", "10,")].join("\n")));
  const textAt = (seconds: number) => playback.turnsAfter(playback.countAt(seconds))[0]?.run.messages[0]?.text.length;
  assert.equal(playback.duration, 10);
  const forwards = [1, 3, 5, 9.99].map(textAt);
  assert.deepEqual(forwards, [101, 301, 501, 1000].map((count) => count * "None.".length));
  assert.deepEqual([9.99, 5, 3, 1].map(textAt).reverse(), forwards);
});

test("each question begins a turn, and an answer to a form continues one", () => {
  const form = '{"at": 2, "event": "input_required", "forms": [{"form_id": "f1", "title": "Name?"}]}';
  const playback = new Playback(decodeRecording([ASKED, DELTA, RESULT, ASKED, form, ASKED, RESULT].join("\n")));
  const turns = playback.turnsAfter(playback.lines.length);
  assert.deepEqual(turns.map((turn) => turn.replies.length), [0, 1]);
  assert.deepEqual(turns.map((turn) => turn.run.ending?.event), ["final_result", "final_result"]);
});

test("times that begin again with the next question go on", () => {
  const again = '{"at": 0, "event": "asked", "question": "again?"}';
  assert.deepEqual(new Playback(decodeRecording([DELTA, RESULT, again, RESULT].join("\n"))).times, [0, 0.5, 0.5, 1.5]);
});
