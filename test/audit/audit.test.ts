import { once } from "node:events";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { auditFeature } from "../../src/audit/feature.ts";
import { clockAt } from "../support/clock-at.ts";
import type { Rest } from "../support/rest.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

let now = Date.now();
let gateway: TestGateway;
/** Each test has its own account. */
let rest: Rest;
let key: string;

beforeAll(async () => {
  gateway = await startTestGateway({}, { clock: clockAt(() => now) });
  await gateway.running.worker({ slots: 100 });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());
beforeEach(async () => {
  now = Math.max(now, Date.now());
  key = await gateway.addAccount();
  rest = gateway.as(key);
});

interface Entry {
  readonly id: string;
  readonly action: string;
  readonly subject_id: string;
  readonly details: Record<string, unknown>;
}

const list = async (query = ""): Promise<Entry[]> => (await rest(`/v1/account/audit-log?limit=100${query}`)).body.data;
const actions = (entries: readonly Entry[]) => entries.map(({ action, details }) => [action, details]);
const send = (method: string, path: string, body?: unknown) => rest(path, body, { method });
const createProfile = (name: string, init: RequestInit = {}) => rest("/v1/profiles", { name }, init);

test("a change creates one entry with its actor, transport, origin and time", async () => {
  const { headers, body } = await createProfile("Shop", { headers: { "user-agent": "probe/1" } });
  const [entry, ...others] = await list();
  expect(others).toEqual([]);
  expect(entry).toEqual({
    id: expect.stringMatching(/^aud_/),
    action: "profile.create",
    actor: { type: "api_key", id: expect.stringMatching(/^key_/), name: "test" },
    subject_id: body.id,
    created_at: expect.stringMatching(/Z$/),
    request_id: headers.get("x-request-id"),
    ip_address: "127.0.0.1",
    user_agent: "probe/1",
    details: { name: "Shop" },
  });
});

test("each change creates an entry, and a request that changes nothing creates none", async () => {
  const { id: profile } = (await createProfile("Shop")).body;
  await send("PATCH", `/v1/profiles/${profile}`, { description: "x", labels: {} });
  const { id: session } = (await rest("/v1/sessions", { profile_id: profile })).body;
  await rest(`/v1/sessions/${session}/navigate`, { url: "https://example.com/" });
  await rest(`/v1/sessions/${session}/cdp-url`, {});
  await send("DELETE", `/v1/sessions/${session}/cdp-url`);
  const file = `/v1/sessions/${session}/files/a.txt`;
  await rest(file, undefined, { method: "PUT", body: "hello" });
  await send("DELETE", file);
  await send("DELETE", `/v1/profiles/${profile}`);
  await send("DELETE", `/v1/sessions/${session}`);
  await send("DELETE", `/v1/sessions/${session}`);
  await rest("/v1/sessions", { archetype: "none" });
  await rest("/v1/profiles");
  expect(actions((await list()).reverse())).toEqual([
    ["profile.create", { name: "Shop" }],
    ["profile.update", { changed: ["description", "labels"] }],
    ["session.create", { runtime: "headless-shell", archetype: expect.anything(), profile_id: profile }],
    ["cdp_url.create", { opens_until: expect.stringMatching(/Z$/) }],
    ["cdp_url.delete", {}],
    ["file.put", { name: "a.txt" }],
    ["file.delete", { name: "a.txt" }],
    ["session.destroy", {}],
  ]);
});

test("a repeated request creates one entry", async () => {
  const headers = { "idempotency-key": "one" };
  const answers = await Promise.all([createProfile("Shop", { headers }), createProfile("Shop", { headers })]);
  answers.push(await createProfile("Shop", { headers }));
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  expect(await list()).toHaveLength(1);
});

test("the list applies its filters and has pages", async () => {
  const ids: string[] = [];
  for (let made = 0; made < 5; made += 1) {
    ids.unshift((await createProfile(`Shop ${made}`)).body.id);
    now += 1_000;
  }
  await send("DELETE", `/v1/profiles/${ids[0]}`);
  const all = await list();
  expect(actions(await list(`&subject_id=${ids[0]}`)).map(([action]) => action)).toEqual([
    "profile.delete",
    "profile.create",
  ]);
  expect(await list("&action=profile.create")).toEqual(all.slice(1));
  expect(await list(`&action=profile.delete&subject_id=${ids[1]}`)).toEqual([]);
  const [{ actor }] = (await rest("/v1/account/audit-log?limit=1")).body.data;
  expect(await list(`&actor_id=${actor.id}`)).toEqual(all);
  expect(await list("&actor_id=key_nobody")).toEqual([]);
  const third = new Date(now - 3_000).toISOString();
  expect((await list(`&from_at=${third}&action=profile.create`)).map(({ subject_id }) => subject_id)).toEqual(
    ids.slice(0, 3),
  );
  expect((await list(`&until_at=${third}`)).map(({ subject_id }) => subject_id)).toEqual(ids.slice(3));

  const pages: Entry[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await rest(`/v1/account/audit-log?limit=4${cursor}`);
    pages.push(...body.data);
    if (!body.has_more) break;
    cursor = `&cursor=${body.next_cursor}`;
  }
  expect(pages).toEqual(all);
  const stranger = gateway.as(await gateway.addAccount());
  expect((await stranger("/v1/account/audit-log")).body.data).toEqual([]);
  expect((await rest("/v1/account/audit-log?cursor=eA")).body.errors).toEqual([
    { field: "cursor", message: "is not a next_cursor of this list" },
  ]);
});

test("entries expire after a year", async () => {
  const year = 365 * 86_400_000;
  const { jobs = [] } = auditFeature.create?.({ db: gateway.running.app.db, clock: clockAt(() => now) }) ?? {};
  const sweep = () => Promise.all(jobs.map((job) => job.run()));
  await createProfile("Old");
  now += year - 1_000;
  await createProfile("New");
  await sweep();
  const kept = await list();
  expect(actions(kept)).toEqual([
    ["profile.create", { name: "New" }],
    ["profile.create", { name: "Old" }],
  ]);
  now += 2_000;
  await sweep();
  expect(await list()).toEqual(kept.slice(0, 1));
});

const revoke = (token: string): Promise<boolean> => {
  const { apiKeys, db } = gateway.running.app;
  return db.transaction((tx) => apiKeys.revoke(tx, `key_${token.split("_")[1]}`));
};
async function exported(query: string): Promise<{ headers: Headers; body: string }> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${gateway.url}/v1/account/audit-log/export?${query}`, { headers });
  return { headers: response.headers, body: await response.text() };
}

test("an export contains all entries as JSON lines or CSV, oldest first", async () => {
  for (let made = 0; made < 300; made += 50)
    await Promise.all(Array.from({ length: 50 }, (_, index) => createProfile(`Shop ${made + index}`)));
  const lines = await exported("format=jsonl");
  expect(lines.headers.get("content-disposition")).toBe('attachment; filename="audit-log.jsonl"');
  expect(lines.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
  const entries: Entry[] = lines.body
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(entries).toHaveLength(300);
  expect(entries.map(({ id }) => id)).toEqual(entries.map(({ id }) => id).sort());
  expect(entries.slice(-100).reverse()).toEqual(await list());

  const csv = await exported("");
  expect(csv.headers.get("content-type")).toMatch(/^text\/csv/);
  const rows = csv.body.trimEnd().split("\r\n");
  expect(rows[0]).toBe(
    "id,created_at,action,actor_type,actor_id,actor_name,subject_id,request_id,ip_address,user_agent,details",
  );
  expect(rows).toHaveLength(301);
  expect(rows[300]).toMatch(
    new RegExp(`^${entries[299]?.id},.*,profile.create,api_key,key_.*"{""name"":""Shop \\d+""}"$`),
  );
  expect((await exported("format=jsonl&action=none")).body).toBe("");
  expect((await exported("action=none")).body.split("\r\n")).toHaveLength(2);
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("https://example.com","x")'])(
  "a CSV cell never starts as the formula %j",
  async (userAgent) => {
    await createProfile("Shop", { headers: { "user-agent": userAgent } });
    const { body } = await exported("");
    const [, row = ""] = body.split("\r\n");
    const begins = row.split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/).map((cell) => cell.replace(/^"/, "").charAt(0));
    expect(begins.filter((first) => "=+-@\t\r".includes(first) && first !== "")).toEqual([]);
    expect(row).toContain(`'${userAgent.trim().replaceAll('"', '""')}`);
  },
);

/** Resolves when the streams of a bearer were notified of its end, which happens in the order of their opening. */
function receiveEnd(token: string): Promise<void> {
  const { bearers } = gateway.running.app;
  const { promise, resolve } = Promise.withResolvers<void>();
  const unwatch = bearers.watch(bearers.read(`Bearer ${token}`), (verdict) => "failure" in verdict && resolve());
  return promise.finally(unwatch);
}

test("an export that is cut off fails and never looks complete", async () => {
  // More than the 64 KiB of an HTTP/2 client's initial window.
  const headers = { "user-agent": "x".repeat(300) };
  for (let made = 0; made < 400; made += 50)
    await Promise.all(Array.from({ length: 50 }, () => createProfile("y".repeat(200), { headers })));
  const client = connect(gateway.url);
  const path = "/v1/account/audit-log/export?format=jsonl";
  const open = () => client.request({ ":path": path, authorization: `Bearer ${key}` });
  try {
    expect((await text(open())).split("\n")).toHaveLength(401);
    const stream = open();
    const [response] = await once(stream, "response");
    expect(response[":status"]).toBe(200);
    // Most of the export is still in the database, because the client has not read. The key ends now.
    const received = receiveEnd(key);
    await revoke(key);
    await received;
    await expect(text(stream)).rejects.toThrow("NGHTTP2_INTERNAL_ERROR");
  } finally {
    client.close();
  }
});
