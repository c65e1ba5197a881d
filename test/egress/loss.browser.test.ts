import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createWorkerMetrics, type WorkerMetrics } from "../../workers/worker-metrics.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { startTinyproxy } from "../support/proxies.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

/** Allows for a busy machine: the minimum interval of probes is one second. */
const soon = { timeout: 20_000, interval: 50 };

let site: FixtureSite;
let worker: WorkerUnderTest | undefined;

beforeAll(async () => {
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start(["127.0.0.1"]);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

async function openThrough(port: number): Promise<DrivenSession> {
  if (!worker) throw new Error("there is no worker");
  const session = await worker.open({ proxy: { server: `http://127.0.0.1:${port}` } }, 1n, site.host);
  onTestFinished(() => session.destroy());
  return session;
}

function changesOf(session: DrivenSession): unknown[] {
  const { sessionId } = session.placement;
  return (worker?.happenings ?? []).filter((each) => each.sessionId === sessionId).map(({ event }) => event);
}

const changed = (capability: string, reason = "") => ({ case: "egressChanged", value: { capability, reason } });

test("a lost proxy is named in navigation errors, reported once and detected when it returns", {
  timeout: 60_000,
}, async () => {
  const proxy = await startTinyproxy();
  onTestFinished(() => proxy.stop());
  const session = await openThrough(proxy.port);
  await session.navigate({ url: site.url("/plain.html") });
  expect(changesOf(session)).toEqual([changed("verified")]);
  await proxy.kill();
  for (const url of [site.url("/plain.html"), `https://${site.host}/`]) {
    await expect(session.navigate({ url })).rejects.toMatchObject({
      slug: "driver-error",
      detail: "the page cannot be reached: the session's proxy cannot be reached (ECONNREFUSED)",
      extensions: { net_error: "ERR_PROXY_CONNECTION_FAILED" },
    });
  }
  await expect.poll(() => changesOf(session), soon).toEqual([changed("verified"), changed("lost", "unreachable")]);
  expect((await session.state()).egress?.state).toBe("lost");
  await proxy.start();
  await expect.poll(() => changesOf(session).at(-1), soon).toEqual(changed("verified"));
  expect((await session.state()).egress?.state).toBe("proxied");
  await session.navigate({ url: site.url("/plain.html") });
  expect(changesOf(session)).toHaveLength(3);
});

test("a proxy that refuses one site is not lost, and the navigation error names the proxy", async () => {
  const proxy = await startTinyproxy({ tunnelsTo: 1 });
  onTestFinished(() => proxy.stop());
  const session = await openThrough(proxy.port);
  await expect(session.navigate({ url: `https://${site.host}/` })).rejects.toMatchObject({
    detail: `the page cannot be reached: the session's proxy refuses a tunnel to ${site.host} (HTTP 403)`,
    extensions: { net_error: "ERR_TUNNEL_CONNECTION_FAILED" },
  });
  // The proxy forwards plain http, as do most proxies that allow tunnels only to few ports.
  await session.navigate({ url: site.url("/plain.html") });
  expect(changesOf(session)).toEqual([changed("verified")]);
});

test("egress counters include ended sessions", async () => {
  if (!worker) throw new Error("there is no worker");
  const { sessions, browsers, slots } = worker;
  const metrics = createWorkerMetrics({
    sessions: () => sessions,
    browsers: () => browsers,
    slots,
    isolation: { isolation: "namespace", browserSandbox: "on" },
  });
  const proxy = await startTinyproxy();
  onTestFinished(() => proxy.stop());
  const session = await openThrough(proxy.port);
  await session.navigate({ url: site.url("/plain.html") });
  await expect(session.navigate({ url: "http://10.0.0.1/" })).rejects.toMatchObject({
    extensions: { blocked_by: "egress" },
  });
  const { bytesSent = 0n, bytesReceived = 0n } = (await session.state()).egress ?? {};
  // Read later, because the browser may send more requests in between.
  const during = await countsOf(metrics);
  expect(Number(bytesSent)).toBeGreaterThan(100);
  expect(during.sent).toBeGreaterThanOrEqual(Number(bytesSent));
  expect(during.received).toBeGreaterThanOrEqual(Number(bytesReceived));
  expect(during.refused).toBeGreaterThan(0);
  await session.destroy();
  await expect.poll(() => browsers.free, soon).toBe(4);
  const after = await countsOf(metrics);
  expect(after.sent).toBeGreaterThanOrEqual(during.sent);
  expect(after.received).toBeGreaterThanOrEqual(during.received);
  expect(after.refused).toBe(during.refused);
});

async function countsOf({ registry }: WorkerMetrics) {
  const text = await registry.metrics();
  const read = (name: string) => Number(new RegExp(`^pilothouse_worker_egress_${name} (\\d+)$`, "m").exec(text)?.[1]);
  return {
    sent: read('bytes_total{direction="sent"}'),
    received: read('bytes_total{direction="received"}'),
    refused: read("refusals_total"),
  };
}
