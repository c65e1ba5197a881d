import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { FetchCommand } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { FetchStreamResponseSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { FakeWorker } from "../support/fake-worker.ts";
import { moveTime } from "../support/move-time.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { type Rest, restClient } from "../support/rest.ts";

const workerToken = "a token of the tests alone";
const url = "https://example.com/";

/** A fetch that has reached a worker. */
interface RunningFetch {
  readonly command: FetchCommand;
  readonly workerId: string;
  readonly left: Promise<void>;
  finish(answer?: MessageInitShape<typeof FetchStreamResponseSchema>[]): void;
  refuse(failure: Error): void;
}

let gateway: PeopleGateway;
const workers: FakeWorker[] = [];
const running: RunningFetch[] = [];

async function startWorker(slots: number): Promise<FakeWorker> {
  const worker: FakeWorker = new FakeWorker({
    control: `unix:${gateway.app.config.dataDir}/fleet.sock`,
    token: workerToken,
    slots,
    handlers: {
      async *fetch({ signal }, command) {
        const { promise, resolve, reject } =
          Promise.withResolvers<MessageInitShape<typeof FetchStreamResponseSchema>[]>();
        const left = new Promise<void>((gone) => signal.addEventListener("abort", () => gone(), { once: true }));
        const page = [
          { header: { url: command.request?.url ?? "", title: "Page", complete: true, durationMs: 1_200 } },
        ];
        running.push({
          command,
          workerId: worker.id,
          left,
          finish: (answer = page) => resolve(answer),
          refuse: reject,
        });
        for (const part of await promise) yield create(FetchStreamResponseSchema, part);
      },
    },
  });
  workers.push(worker);
  await worker.start();
  return worker;
}

beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken, QUEUE_MS: "1000" });
  await startWorker(20);
}, 60_000);
afterEach(() => {
  for (const { finish } of running.splice(0)) finish();
});
afterAll(async () => {
  for (const worker of workers) worker.die();
  await gateway?.[Symbol.asyncDispose]();
});

async function customer(tier: string): Promise<Rest> {
  const { rest, accountId } = await gateway.signUp();
  const { body } = await rest("/v1/api-keys", { name: "fetch" });
  await gateway.admin("set-tier", "--account", accountId, "--tier", tier);
  return restClient({ url: gateway.url, key: body.key });
}

/** Resolves when so many fetches run. */
const arrived = (count: number) => expect.poll(() => running.length, { timeout: 10_000 }).toBe(count);

const rows = () => gateway.app.db.sql.selectFrom("fetches").select("id").execute();

const browsersOf = () => new Set(running.map(({ command }) => command.browserId));

test("up to 4 fetches of an account with the same options share a browser", async () => {
  const [rest, other] = [await customer("api_builder"), await customer("api_builder")];
  const answers = Array.from({ length: 4 }, () => rest("/v1/fetch", { url }));
  await arrived(4);
  expect(browsersOf().size).toBe(1);
  answers.push(rest("/v1/fetch", { url }));
  await arrived(5);
  answers.push(rest("/v1/fetch", { url, locale: "de-AT" }), other("/v1/fetch", { url }));
  await arrived(7);
  expect(browsersOf().size).toBe(4);
  expect(new Set(running.map(({ command }) => command.accountId)).size).toBe(2);
  const { account } = (await rest("/v1/account/me")).body;
  const inUse = account.quotas.find(({ quota }: { quota: string }) => quota === "concurrent_sessions");
  expect(inUse.used).toBe(3);
  expect((await rest("/v1/sessions")).body.data).toEqual([]);
  for (const { finish } of running) finish();
  const statuses = (await Promise.all(answers)).map(({ status }) => status);
  expect(statuses).toEqual(Array(7).fill(200));
});

test("a browser of fetches counts as one concurrent session while a fetch runs", async () => {
  const rest = await customer("free");
  const first = rest("/v1/fetch", { url });
  await arrived(1);
  const second = rest("/v1/fetch", { url });
  await arrived(2);
  expect((await rest("/v1/sessions", {})).body).toMatchObject({ status: 429, current_sessions: 1, limit: 1 });
  expect((await rest("/v1/fetch", { url, locale: "de" })).body).toMatchObject({ status: 429, limit: 1 });
  for (const { finish } of running) finish();
  await Promise.all([first, second]);
  const { status, body } = await rest("/v1/sessions", {});
  expect(status).toBe(201);
  expect((await rest("/v1/fetch", { url })).body).toMatchObject({ status: 429, current_sessions: 1, limit: 1 });
  expect((await rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" })).status).toBe(204);
});

test("a fetch uses whole seconds of session minutes, at least one, and appears in the usage", async () => {
  const rest = await customer("api_builder");
  const fetchFor = async (durationMs: number) => {
    const answer = rest("/v1/fetch", { url });
    await arrived(1);
    running.pop()?.finish([{ header: { url, durationMs } }]);
    expect((await answer).status).toBe(200);
  };
  await fetchFor(20);
  await fetchFor(1_200);
  const { body } = await rest("/v1/account/usage");
  expect(body.days.at(-1)).toMatchObject({ session_seconds: 0, sessions: 0, fetch_seconds: 3, fetches: 2 });
});

test("a screenshot and a PDF are streamed behind the other fields", async () => {
  const rest = await customer("api_builder");
  const answer = rest("/v1/fetch", { url, formats: ["screenshot", "pdf"] });
  await arrived(1);
  const [picture, pdf] = [Buffer.from("a picture of some bytes"), Buffer.from("a file")];
  running[0]?.finish([
    { header: { url, title: "Page" } },
    { screenshot: picture.subarray(0, 10) },
    { screenshot: picture.subarray(10) },
    { pdf },
  ]);
  expect((await answer).body).toMatchObject({
    title: "Page",
    screenshot: picture.toString("base64"),
    pdf: pdf.toString("base64"),
  });
});

test("a fetch whose gateway died no longer counts once it has lapsed", async () => {
  const rest = await customer("free");
  const { db } = gateway.app;
  const answer = rest("/v1/fetch", { url });
  await arrived(1);
  // The row of a gateway that died stays like the row of this fetch.
  await db.sql.updateTable("fetches").set({ id: "fet_of_a_gateway_that_died" }).execute();
  running.pop()?.finish();
  await answer;
  await moveTime(db, 30_000);
  expect((await rest("/v1/sessions", {})).status).toBe(429);
  await moveTime(db, 90_000);
  const { status, body } = await rest("/v1/sessions", {});
  expect(status).toBe(201);
  await rest(`/v1/sessions/${body.id}`, undefined, { method: "DELETE" });
  gateway.pass(0);
  await expect.poll(rows, { timeout: 10_000 }).toEqual([]);
});

test("a fetch ends on its worker when its client leaves", async () => {
  const rest = await customer("free");
  const leaving = new AbortController();
  const answer = rest("/v1/fetch", { url }, { signal: leaving.signal });
  await arrived(1);
  leaving.abort();
  await expect(answer).rejects.toThrow();
  await running[0]?.left;
  await expect.poll(rows, { timeout: 10_000 }).toEqual([]);
});

test("a fetch that its worker refuses runs on another worker, once", async () => {
  const second = await startWorker(20);
  const rest = await customer("api_builder");
  const refusal = fail("capacity-unavailable", {}, { detail: "the worker drains" });
  const answer = rest("/v1/fetch", { url });
  await arrived(1);
  running[0]?.refuse(refusal);
  await arrived(2);
  expect(new Set(running.map(({ workerId }) => workerId)).size).toBe(2);
  running[1]?.refuse(refusal);
  expect((await answer).body).toMatchObject({ status: 503, detail: "the worker drains" });
  const crashed = rest("/v1/fetch", { url });
  await arrived(3);
  running[2]?.refuse(fail("driver-error", { target_closed: true }, { detail: "the browser of the fetch ended" }));
  expect((await crashed).body).toMatchObject({ status: 502, detail: "the browser of the fetch ended" });
  expect(running).toHaveLength(3);
  second.die();
});
