import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import type { Thumbnail } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { readImageSize } from "../../workers/driver/capture/image-size.ts";
import { CommandRunner } from "../../workers/session/command-runner.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

let site: FixtureSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host]);
});
afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});
afterEach(() => vi.restoreAllMocks());

/** Opens a session that shows a page with a script. */
async function show(script: string, options: Parameters<WorkerUnderTest["open"]>[0] = {}): Promise<DrivenSession> {
  const session = await worker.open(options);
  onTestFinished(() => session.destroy());
  await visit(session, script);
  return session;
}

/** Navigates to a page with a script, which must differ in length from that of the page before. */
async function visit(session: DrivenSession, script: string): Promise<void> {
  const url = site.url(`/script.html?${script.length}#${encodeURIComponent(script)}`);
  await session.navigate({ url, timeoutMs: 60_000 }, { waitMs: 60_000 });
}

interface Shown {
  readonly thumbnail: Thumbnail;
  readonly at: number;
}

interface Followed {
  readonly shown: Shown[];
  /** Resolves when the stream ends. */
  readonly ended: Promise<void>;
  stop(): void;
}

/** Follows a session until the test ends. */
function follow(session: DrivenSession): Followed {
  const over = new AbortController();
  onTestFinished(() => over.abort());
  const shown: Shown[] = [];
  const run = async (): Promise<void> => {
    for await (const thumbnail of session.thumbnails(over.signal)) shown.push({ thumbnail, at: performance.now() });
  };
  const ended = run();
  ended.catch(() => undefined);
  return { shown, ended, stop: () => over.abort() };
}

/** Waits for pictures. On a busy machine, pictures that take longer than 200 ms are dropped. */
const until = (shown: readonly Shown[], count: number) =>
  expect.poll(() => shown.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(count);

const tap = (session: DrivenSession) => session.interact({ action: { case: "tap", value: { selector: "body" } } });

test("sends a picture at once, and the next one when the page has changed", { timeout: 120_000 }, async () => {
  const session = await show(
    "document.body.textContent = 'tap'; document.onclick = () => setTimeout(() => (document.body.style.background = 'red'), 3_000)",
  );
  const { shown } = follow(session);
  await until(shown, 1);
  const [first] = shown;
  const data = Buffer.from(first?.thumbnail.data ?? []);
  const { sessionId } = session.placement;
  expect(first?.thumbnail).toMatchObject({ sessionId, contentType: "image/jpeg", width: 320, height: 180 });
  expect(readImageSize(data)).toEqual({ width: 320, height: 180 });
  expect(data.length).toBeLessThanOrEqual(12 * 1_024);
  await tap(session);
  await until(shown, 2);
  expect(data.equals(Buffer.from(shown[1]?.thumbnail.data ?? []))).toBe(false);
});

test("takes pictures at most every 2 s, and none of a page that does not paint", { timeout: 180_000 }, async () => {
  // Includes pictures that are dropped because they take longer than 200 ms.
  const taken: { readonly by: CommandRunner; readonly at: number }[] = [];
  const take = CommandRunner.prototype.thumbnail;
  vi.spyOn(CommandRunner.prototype, "thumbnail").mockImplementation(function (this: CommandRunner) {
    taken.push({ by: this, at: performance.now() });
    return take.call(this);
  });
  const { shown } = follow(await show("document.body.textContent = 'still'", { archetype: "pixel-7" }));
  await until(shown, 1);
  expect(Math.max(shown[0]?.thumbnail.width ?? 0, shown[0]?.thumbnail.height ?? 0)).toBe(320);
  const still = taken[0]?.by;
  const before = taken.length;
  const change = "document.body.style.background = 'hsl(' + Math.random() * 360 + ' 50% 50%)'";
  follow(await show(`setInterval(() => (${change}), 100)`));
  const moving = () => taken.filter(({ by }) => by !== still);
  await expect.poll(() => moving().length, { timeout: 60_000 }).toBeGreaterThanOrEqual(3);
  for (const [index, { at }] of moving().entries())
    if (index > 0) expect(at - (moving()[index - 1]?.at ?? 0)).toBeGreaterThan(1_800);
  // A picture may itself have been the cause of a paint.
  expect(taken.length - moving().length - before).toBeLessThanOrEqual(1);
  expect(shown).toHaveLength(1);
});

test("keeps no session from being idle, and ends with the session", { timeout: 120_000 }, async () => {
  const session = await show("document.body.textContent = 'idle'", { idleTimeoutSeconds: 4 });
  const { shown, ended } = follow(session);
  await until(shown, 1);
  await ended;
  await expect(session.state()).rejects.toMatchObject({ slug: "session-destroyed" });
});

test("covers the fields of variables", { timeout: 180_000 }, async () => {
  const script = `document.body.innerHTML = "<input style='position:fixed; inset:0; font-size:300px'>"`;
  const variables = [{ name: "secret", value: "MMWWMMWW", domains: ["127.0.0.1"] }];
  const sizes: number[] = [];
  const session = await worker.open();
  onTestFinished(() => session.destroy());
  for (const text of ["MMWWMMWW", "{{secret}}"]) {
    await visit(session, `${script}; // ${text}`);
    const action = { case: "type", value: { selector: "input", text } } as const;
    await session.interact({ action }, { variables: text === "{{secret}}" ? variables : [] });
    // Includes pictures that are dropped because they take longer than 200 ms.
    using taken = vi.spyOn(CommandRunner.prototype, "thumbnail");
    const size = () =>
      taken.mock.settledResults.flatMap(({ type, value }) =>
        type === "fulfilled" && value ? value.data.length : [],
      )[0];
    const { stop } = follow(session);
    await expect.poll(size, { timeout: 60_000 }).toBeGreaterThan(0);
    sizes.push(size() ?? 0);
    stop();
  }
  const [plain = 0, covered = 0] = sizes;
  // A covered field has one colour, which JPEG stores in few bytes.
  expect(covered).toBeLessThan(plain / 2);
});
