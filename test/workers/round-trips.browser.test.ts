import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CdpConnection } from "../../workers/cdp/cdp-connection.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import type { HostileDriver } from "../support/hostile-runner.ts";
import { workerDriver } from "../support/worker-driver.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

let site: FixtureSite;
let worker: WorkerUnderTest;
let driver: HostileDriver;

/** CDP commands since an action began. */
let sent: string[] = [];

beforeAll(async () => {
  const { session: open } = CdpConnection.prototype;
  vi.spyOn(CdpConnection.prototype, "session").mockImplementation(function (this: CdpConnection, sessionId) {
    const session = open.call(this, sessionId);
    if (!vi.isMockFunction(session.send)) {
      const send = session.send.bind(session);
      const counted = vi.fn((method, params) => {
        sent.push(method);
        return send(method, params);
      });
      Object.assign(session, { send: counted });
    }
    return session;
  });
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host]);
  driver = workerDriver(await worker.open({ runtime: "headless-shell" }));
  await driver.run("navigate", { url: site.url("/form.html") });
  // Installs our script in the document.
  await driver.run("interact", { action: { kind: "hover", selector: "#hover" } });
});

afterAll(async () => {
  vi.restoreAllMocks();
  await worker?.stop();
  await site?.stop();
});

test.each([
  ["tap", { selector: "#go" }, { "Runtime.callFunctionOn": 2, "Input.dispatchMouseEvent": 3 }],
  ["hover", { selector: "#hover" }, { "Runtime.callFunctionOn": 2, "Input.dispatchMouseEvent": 1 }],
  ["select", { selector: "#country", values: ["de"] }, { "Runtime.callFunctionOn": 2 }],
  ["key", { key: "Shift" }, { "Runtime.callFunctionOn": 1, "Input.dispatchKeyEvent": 2 }],
])("%s sends its page no unnecessary commands", async (kind, action, asked) => {
  sent = [];
  const { problem } = await driver.run("interact", { action: { kind, ...action } });
  expect(problem).toBeUndefined();
  const counts: Record<string, number> = {};
  for (const method of sent) counts[method] = (counts[method] ?? 0) + 1;
  expect(counts).toEqual(asked);
});
