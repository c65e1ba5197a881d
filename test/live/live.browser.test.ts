import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { borrowCdpScene, type CdpScene } from "../support/cdp-proxy-scene.ts";
import { LiveClient } from "../support/live-client.ts";
import { openSlowLink } from "../support/slow-link.ts";

let scene: CdpScene;
/** Session for tests that do not end it. */
let shared: string;
/** Session without view links between tests. */
let other: string;
beforeAll(async () => {
  scene = await borrowCdpScene();
  [shared, other] = await Promise.all([scene.open(), scene.open()]);
}, 120_000);
afterAll(() => scene?.[Symbol.asyncDispose](), 60_000);

/** Shows a page in a session, and creates a view link. Returns the session's path and the link's token. */
async function openLinked(path: string, link: object = {}, session = shared) {
  expect(await scene.rest(`${session}/navigate`, { url: scene.site.url(path) })).toMatchObject({ status: 200 });
  const { status, body } = await scene.rest(`${session}/view-links`, link);
  expect(status).toBe(201);
  return { session, id: body.id, key: new URL(body.url).hash.slice(1) };
}

const join = (key: string, request: object = {}, options: { acknowledges?: boolean } = {}) =>
  LiveClient.join(scene.service.url, key, request, options);

/** Joins with a request that is refused, and returns the close code and reason. */
async function refusalOf(key: string, request: object = {}): Promise<{ code: number; reason: string }> {
  using viewer = await join(key, request);
  return await viewer.closed;
}

test("a viewer receives the session's state, its viewers and its end", async () => {
  const { session, key } = await openLinked("/plain.html", { name: "Support desk" }, await scene.open());
  using viewer = await join(key);
  const { hello } = await viewer.receive((message) => message.hello);
  expect(hello).toMatchObject({
    session_id: session.split("/").at(-1),
    viewer: { name: "Support desk", can_control: false },
    media: "frames",
  });
  const page = { id: "page_1", title: "Plain", active: true, crashed: false, url: scene.site.url("/plain.html") };
  const { state } = await viewer.receive((message) => message.state);
  expect(state).toMatchObject({ status: "live", control: { state: "api" }, pages: [page] });
  expect(state.viewport).toMatchObject({ width: 1280, height: 720 });

  using second = await join(key, { name: "Ada" });
  await viewer.receive(({ viewers }) => viewers?.viewers.length === 2 && viewers.viewers[1].name === "Ada");
  second.socket.close();
  await viewer.receive(({ viewers }) => viewers?.viewers.length === 1);
  viewer.send({ heartbeat: {} });
  await viewer.receive(({ heartbeat }) => heartbeat);
  await scene.rest(session, undefined, { method: "DELETE" });
  expect(await viewer.closed).toEqual({ code: 1000, reason: "" });
  expect(viewer.received.at(-1)).toEqual({ ended: { reason: "destroyed" } });
}, 60_000);

test("a viewer receives titles that a script sets", async () => {
  const { key } = await openLinked("/counting-title.html");
  using viewer = await join(key);
  const { state: first } = await viewer.receive(({ state }) => state?.pages[0].title);
  await viewer.receive(({ state }) => Number(state?.pages[0].title) > Number(first.pages[0].title) + 10);
}, 60_000);

test("a viewer who joins a static page receives the same picture as the others", async () => {
  const { key } = await openLinked("/plain.html");
  using first = await join(key);
  const { width, height, contentType, data } = await first.see();
  expect({ width, height, contentType }).toEqual({ width: 1280, height: 720, contentType: "image/jpeg" });
  expect([...data.subarray(0, 2)]).toEqual([0xff, 0xd8]);
  using second = await join(key);
  const seen = await second.see();
  // The first viewer has received this picture too, though it may have a newer one.
  await first.see(({ sequence }) => sequence >= seen.sequence);
  const shared = first.frames.find(({ sequence }) => sequence === seen.sequence);
  const digest = (bytes?: Uint8Array) => bytes && createHash("sha256").update(bytes).digest("hex");
  expect(digest(seen.data)).toBe(digest(shared?.data));
}, 60_000);

test("a stalled viewer receives two frames, delays no others, and resumes with the newest", async () => {
  const { key } = await openLinked("/moving.html");
  using stalled = await join(key, {}, { acknowledges: false });
  await expect.poll(() => stalled.frames.length, { timeout: 20_000 }).toBe(2);
  using brisk = await join(key);
  await expect.poll(() => brisk.frames.length, { timeout: 20_000 }).toBeGreaterThan(30);
  expect(stalled.frames).toHaveLength(2);
  const { sequence: newest = 0n } = brisk.frames.at(-1) ?? {};
  stalled.send({ ack: { sequence: Number(stalled.frames.at(-1)?.sequence) } });
  await expect.poll(() => stalled.frames[2]?.sequence, { timeout: 20_000 }).toBeGreaterThanOrEqual(newest);
}, 90_000);

test("a viewer at 100 kbit/s delays neither the pictures nor the input of another", async () => {
  const { key } = await openLinked("/moving.html", { control: true });
  const { port } = new URL(scene.service.url);
  await using line = await openSlowLink(Number(port), 0, 12_500);
  using slow = await LiveClient.join(`http://127.0.0.1:${line.port}`, key);
  await slow.receive(({ hello }) => hello);
  using brisk = await join(key);
  await brisk.see();
  brisk.send({ take_control: {} });
  await brisk.receive(({ state }) => state?.control.state === "human_control");
  const [seenBySlow, seenByBrisk] = [slow.frames.length, brisk.frames.length];
  const clicks = 20;
  for (let count = 1; count <= clicks; count += 1) {
    const at = { x: 10 + count, y: 300 };
    brisk.send({
      input: {
        events: [
          { kind: "pointer_down", ...at },
          { kind: "pointer_up", ...at },
        ],
      },
    });
    await brisk.receive(({ input }) => input?.accepted === 2 * count);
    await brisk.see(({ sequence }) => sequence > (brisk.frames[seenByBrisk + count - 2]?.sequence ?? 0n));
  }
  // The slow viewer has received a small share of the frames.
  expect(slow.frames.length - seenBySlow).toBeLessThan(brisk.frames.length - seenByBrisk);
  brisk.send({ hand_back: {} });
  await brisk.receive(() => brisk.received.findLast(({ state }) => state)?.state.control.state === "api");
}, 60_000);

test("a viewer that sends without reading delays no others and receives no more messages", async () => {
  const { key } = await openLinked("/moving.html", { control: true });
  using deaf = await join(key);
  await deaf.see();
  deaf.socket.pause();
  // Each message has an answer, and is not processed while the answers are unread.
  for (let count = 0; count < 5_000; count += 1) deaf.send(count % 2 === 0 ? { heartbeat: {} } : { hand_back: {} });
  using brisk = await join(key);
  await expect.poll(() => brisk.frames.length, { timeout: 30_000 }).toBeGreaterThan(30);
  brisk.send({ take_control: {} });
  await brisk.receive(({ state }) => state?.control.state === "human_control");
  brisk.send({ hand_back: {} });
  await brisk.receive(() => brisk.received.findLast(({ state }) => state)?.state.control.state === "api");
}, 90_000);

test("the viewers of a gateway share one stream of frames until the last one leaves", async () => {
  const { key } = await openLinked("/moving.html");
  const streams = async () => {
    const metrics = await (await fetch(`${scene.service.internalUrl}/metrics`)).text();
    return /^pilothouse_live_frame_streams(?:\{.*\})? (\d+)$/m.exec(metrics)?.[1];
  };
  await expect.poll(streams, { timeout: 20_000 }).toBe("0");
  using first = await join(key);
  await first.see();
  using stalled = await join(key, {}, { acknowledges: false });
  using third = await join(key);
  await third.see();
  await stalled.see();
  expect(await streams()).toBe("1");
  first.socket.close();
  await third.receive(({ viewers }) => viewers?.viewers.length === 2);
  const seen = third.frames.length;
  await expect.poll(() => third.frames.length, { timeout: 20_000 }).toBeGreaterThan(seen + 30);
  expect(stalled.frames).toHaveLength(2);
  expect(await streams()).toBe("1");
  for (const { socket } of [stalled, third]) socket.close();
  await expect.poll(streams, { timeout: 20_000 }).toBe("0");
}, 90_000);

test("a hidden viewer receives no frames until it is visible again", async () => {
  const { key } = await openLinked("/moving.html");
  using hidden = await join(key, { hidden: true });
  using other = await join(key);
  await expect.poll(() => other.frames.length, { timeout: 20_000 }).toBeGreaterThan(5);
  expect(hidden.frames).toEqual([]);
  hidden.send({ visibility: { hidden: false } });
  await hidden.see();
}, 60_000);

test("at most 32 viewers watch a session", async () => {
  const { key } = await openLinked("/plain.html");
  using all = new DisposableStack();
  for (let count = 0; count < 32; count += 1) {
    const viewer = all.use(await join(key));
    await viewer.receive(({ hello }) => hello);
  }
  expect(await refusalOf(key)).toEqual({ code: 1008, reason: "tier-limit" });
}, 60_000);

test("a link opens only its own session, to watch", async () => {
  const { session, key } = await openLinked("/plain.html");
  const { id: otherId } = await openLinked("/plain.html", {}, other);
  const id = session.split("/").at(-1);
  expect(await refusalOf(key, { session_id: other.split("/").at(-1) })).toMatchObject({ reason: "not-found" });
  const bearer = { headers: { authorization: `Bearer ${key}` } };
  for (const path of [session, `${session}/view-links`, `${session}/cdp/json/version`])
    expect(await scene.rest(path, undefined, bearer)).toMatchObject({ status: 403 });
  const address = new URL(await scene.cdpUrl(session)).pathname.split("/").at(-1) ?? "";
  await expect(join(address)).rejects.toThrow("403");
  // An API key can join as well, with a session id.
  using viewer = await join(scene.service.key, { session_id: id });
  expect((await viewer.receive(({ hello }) => hello)).hello.viewer).toMatchObject({
    name: "Viewer",
    can_control: true,
  });
  expect(await refusalOf(scene.service.key)).toMatchObject({ code: 1008, reason: "validation-failed" });
  for (const [at, status] of [
    [session, 404],
    [other, 204],
  ] as const)
    expect(await scene.rest(`${at}/view-links/${otherId}`, undefined, { method: "DELETE" })).toMatchObject({ status });
}, 60_000);

test.each([
  [3_600, {}],
  [60, { expires_in_seconds: 60 }],
])("a view link is valid for %i s after a request with %j", async (seconds, request) => {
  const { body } = await scene.rest(`${shared}/view-links`, request);
  expect((Date.parse(body.expires_at) - Date.parse(body.created_at)) / 1_000).toBeCloseTo(seconds, 0);
  await scene.rest(`${shared}/view-links/${body.id}`, undefined, { method: "DELETE" });
});

test("a revoked link disconnects its viewers, and is no longer listed", async () => {
  const { session, id, key } = await openLinked("/plain.html", { control: true, expires_in_seconds: 60 }, other);
  const { body: list } = await scene.rest(`${session}/view-links`);
  expect(list).toMatchObject({ data: [{ id, control: true, name: "" }], has_more: false });
  expect(list.data[0]).not.toHaveProperty("url");
  using viewer = await join(key);
  await viewer.receive(({ hello }) => hello?.viewer.can_control);
  const revokedAt = Date.now();
  expect(await scene.rest(`${session}/view-links/${id}`, undefined, { method: "DELETE" })).toMatchObject({
    status: 204,
  });
  expect(await viewer.closed).toEqual({ code: 1008, reason: "revoked-key" });
  expect(Date.now() - revokedAt).toBeLessThan(5_000);
  expect((await scene.rest(`${session}/view-links`)).body.data).toEqual([]);
  await expect(join(key)).rejects.toThrow("401");
}, 60_000);
