import assert from "node:assert/strict";
import { test } from "node:test";

import type { ConversationPage, ConversationRow, Requests, Sharing, StoredConversation, TaskState } from "../src/api";
import { ConversationList } from "../src/state/conversation_list";
import { Frames } from "../src/state/frames";
import { RequestError } from "../src/state/http";
import { Notifications } from "../src/state/notifications";
import { OpenConversations } from "../src/state/open_conversations";
import { FakeSupervisor } from "./fake_supervisor";
import { final, status } from "./updates";

const OWN: Sharing = { owner: "token:ann", owned: true, groups: [], may_share: true };

function row(id: string, state: TaskState = "completed", changed = "2026-11-17T12:00:00Z", tasks = 1): ConversationRow {
  return { id, name: null, ...OWN, question: `question of ${id}`, state, tasks, created: changed, changed };
}

/** Answers requests from a table; an error is thrown. */
class FakeRequests implements Requests {
  readonly made: string[] = [];
  readonly answers: Record<string, unknown> = {};

  json<Result>(method: string, path: string): Promise<Result> {
    this.made.push(`${method} ${path}`);
    const answer = this.answers[path];
    return answer instanceof Error || answer === undefined ? Promise.reject(answer) : Promise.resolve(answer as Result);
  }
}

function opened(requests: FakeRequests, supervisor = new FakeSupervisor()) {
  const changes: [string, boolean][] = [];
  const environment = { supervisor, frames: new Frames((apply) => apply(true)), subject: () => null };
  const open = new OpenConversations(requests, environment, (one, isRunning) => changes.push([one.id, isRunning]));
  return { open, changes };
}

function stored(id: string, state: TaskState): StoredConversation {
  const times = { created: "2026-11-17T12:00:00Z", changed: "2026-11-17T12:00:00Z" };
  const task = { id: `t-${id}`, state, question: "?", message_id: `m-${id}`, last_seq: 4, events: [], decisions: [] };
  return { id, name: "Name", ...OWN, tasks: [{ ...task, ...times }] };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a conversation is loaded when it is shown, and kept for the way back", async () => {
  const requests = new FakeRequests();
  requests.answers["conversations/a"] = stored("a", "completed");
  requests.answers["conversations/b"] = new RequestError(404, "There is no conversation 'b'.");
  const { open } = opened(requests);
  open.show("a");
  assert.equal(open.current.value?.loading.value, "loading");
  await settled();
  const first = open.current.value;
  assert.equal(first?.name.value, "Name");
  open.show("b");
  await settled();
  assert.equal(open.current.value?.loading.value, "missing");
  open.show("a");
  assert.equal(open.current.value, first);
});

test("a new conversation is not requested before its first question", async () => {
  const requests = new FakeRequests();
  const { open } = opened(requests);
  open.create("new");
  open.show("new");
  await settled();
  assert.deepEqual(requests.made, []);
});

test("a conversation is loaded again when another client has changed it", async () => {
  const requests = new FakeRequests();
  requests.answers["conversations/a"] = stored("a", "completed");
  const { open } = opened(requests);
  open.show("a");
  await settled();
  await open.compare([row("a")], performance.now());
  await open.compare([row("a")], performance.now());
  assert.equal(requests.made.length, 1);
  await open.compare([row("a", "completed", "2026-11-17T12:30:00Z")], performance.now());
  assert.equal(requests.made.length, 2);
  await open.compare([row("a", "working", "2026-11-17T12:30:00Z", 2)], performance.now());
  assert.equal(requests.made.length, 3);
});

test("the sharing is that of the newest response, and of a change in this page", async () => {
  const requests = new FakeRequests();
  requests.answers["conversations/a"] = stored("a", "completed");
  const { open } = opened(requests);
  const before = performance.now();
  open.show("a");
  await settled();
  assert.deepEqual(open.current.value?.sharing.value, OWN);
  open.shared("a", ["sre"]);
  await open.compare([row("a")], before);
  assert.deepEqual(open.current.value?.sharing.value, { ...OWN, groups: ["sre"] });
  await open.compare([{ ...row("a"), groups: ["ops"] }], performance.now());
  assert.deepEqual(open.current.value?.sharing.value, { ...OWN, groups: ["ops"] });
});

test("a run goes on out of view, without a connection", async () => {
  const requests = new FakeRequests();
  const supervisor = new FakeSupervisor({ sends: 1, breaks: true }, { sends: 1, breaks: true });
  supervisor.log = [status(1, "working"), status(2, "working"), final(3, "Hi"), status(4, "completed")];
  const { open, changes } = opened(requests, supervisor);
  const conversation = open.create("new");
  open.show("new");
  const asked = conversation.ask("hello");
  await settled();
  open.show(null);
  await asked;
  assert.equal(conversation.isFollowed, false);
  assert.ok(changes.some(([id, isRunning]) => id === "new" && isRunning));
});

test("a hidden page gives its connection back and continues where it was", async () => {
  const requests = new FakeRequests();
  const supervisor = new FakeSupervisor({ sends: 2, breaks: true }, { sends: 9 });
  supervisor.log = [status(1, "working"), status(2, "working"), final(3, "Hi"), status(4, "completed")];
  const { open, changes } = opened(requests, supervisor);
  const conversation = open.create("new");
  open.show("new");
  const asked = conversation.ask("hello");
  await settled();
  open.pause();
  await asked;
  assert.equal(conversation.turns.value[0]?.state.value, "working");
  open.resume();
  await settled();
  assert.deepEqual(supervisor.subscriptions, [2]);
  assert.equal(conversation.turns.value[0]?.state.value, "completed");
  assert.deepEqual(changes.at(-1), ["new", false]);
});

test("the ends of awaited runs are reported once, unless the person sees them", () => {
  let seen = "";
  const reported: string[] = [];
  const notifications = new Notifications(
    (id) => id === seen,
    (notice) => reported.push(`${notice.conversation} ${notice.kind}`),
  );
  const now = performance.now();
  for (const id of ["a", "b", "c", "d"]) notifications.await(id);
  const rows = [row("a"), row("b", "working"), row("c", "input-required"), row("d", "canceled"), row("e", "failed")];
  notifications.check(rows, now - 1);
  assert.deepEqual(reported, [], "the rows are older than the runs");
  notifications.check(rows, performance.now());
  notifications.check(rows, performance.now());
  assert.deepEqual(reported, ["a answered", "c asks"]);
  seen = "b";
  notifications.check([row("b", "failed")], performance.now());
  assert.equal(reported.length, 2);
  assert.deepEqual(
    notifications.notices.value.map((notice) => notice.text),
    ["question of a", "question of c"],
  );
  notifications.dismiss(notifications.notices.value[0]!);
  assert.equal(notifications.notices.value.length, 1);
});

test("a refresh keeps the older pages of the list and does not disturb a search", async () => {
  const requests = new FakeRequests();
  const page = (rows: ConversationRow[], next: string | null): ConversationPage => ({ conversations: rows, next });
  const newest = Array.from({ length: 50 }, (_, index) => row(`n${index}`, "completed", "2026-11-17T12:00:00Z"));
  requests.answers["conversations?limit=50"] = page(newest, "p2");
  requests.answers["conversations?limit=50&after=p2"] = page([row("old", "completed", "2026-01-01T00:00:00Z")], null);
  const list = new ConversationList(requests);
  await list.refresh();
  assert.equal(list.hasMore.value, true);
  await list.loadMore();
  assert.equal(list.hasMore.value, false);
  await list.refresh();
  assert.equal(list.rows.value.at(-1)?.id, "old");
  assert.equal(list.hasMore.value, false);
  list.search.value = "checkout";
  list.rows.value = [row("found")];
  await list.refresh();
  assert.deepEqual(list.rows.value.map((one) => one.id), ["found"]);
});

test("a conversation is requested once for all who want it first", async () => {
  const requests = new FakeRequests();
  requests.answers["conversations/a"] = stored("a", "completed");
  const { open } = opened(requests);
  open.show("a");
  await Promise.all([open.load(), open.compare([row("a")], performance.now())]);
  assert.deepEqual(requests.made, ["GET conversations/a"]);
  await open.load();
  assert.equal(requests.made.length, 2);
});
