import { afterAll, beforeAll, expect, test } from "vitest";
import { expectNoFaults } from "../support/generated-run.ts";
import { GeneratedSite } from "../support/generated-site.ts";
import { WorkerUnderTest } from "../support/worker-under-test.ts";

let site: GeneratedSite;
let worker: WorkerUnderTest;

beforeAll(async () => {
  site = await new GeneratedSite().start();
  worker = await WorkerUnderTest.start(site.hosts);
});

afterAll(async () => {
  await worker?.stop();
  await site?.stop();
});

test.each(["headless-shell", "chromium"])(
  "in %s, references exactly the elements of 250 pages that a person could act on",
  { timeout: 1_800_000 },
  async (runtime) => {
    const session = await worker.open({ runtime });
    await expectNoFaults(session, site, runtime === "chromium" ? 1_250 : 1_000, 250);
    await session.destroy();
    expect.assertions(1);
  },
);
