import { afterAll, beforeAll, describe, onTestFinished, test } from "vitest";
import { FixtureSite } from "../support/fixture-site.ts";
import { hostileCases } from "../support/hostile-cases.ts";
import { runHostileCase } from "../support/hostile-runner.ts";
import { workerDriver } from "../support/worker-driver.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

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

describe.each(["headless-shell", "chromium"])("a page in %s", (runtime) => {
  test.each(hostileCases)("$name", { timeout: 60_000 }, async (hostileCase) => {
    const session = await worker.open({ ...hostileCase.session, runtime });
    onTestFinished(() => session.destroy());
    await runHostileCase(hostileCase, workerDriver(session), site.url(""));
  });
});
