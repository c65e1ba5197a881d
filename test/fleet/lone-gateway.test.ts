import { expect, test } from "vitest";
import { createApp } from "../../src/app.ts";
import { silentLog } from "../support/database.ts";
import { startSessionsApp } from "../support/sessions-app.ts";

test("should refuse a second gateway on one database, and leave the first alone", async () => {
  await using running = await startSessionsApp();
  const second = createApp(running.app.config, { log: silentLog, workerProgram: null });
  await expect(second.start()).rejects.toThrow(/another gateway uses this database/);
  await second.stop();
  expect(await running.app.isReady()).toBe(true);
});
