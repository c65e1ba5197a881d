import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateSessionRequestSchema, DestroySessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { releaseVersion } from "../../src/platform/release.ts";
import { executables } from "../isolation/world.ts";
import { freePorts } from "../support/free-port.ts";
import { startSessionsApp } from "../support/sessions-app.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

/** Milliseconds for an operation that takes a second on an idle machine. */
const pollOptions = { timeout: 30_000 };

test("a worker reports its isolation and is not ready while it cannot launch browsers and has no session", async () => {
  await using running = await startSessionsApp();
  const { app, sessions } = running;
  const fault = join(app.config.dataDir, "no-more-browsers");
  const browser = join(app.config.dataDir, "browser");
  await writeFile(
    browser,
    `#!/bin/sh\n[ "$1" = --version ] || [ ! -e "${fault}" ] || exit 1\nexec "${executables["headless-shell"]}" "$@"\n`,
  );
  await chmod(browser, 0o755);
  const { INTERNAL_PORT } = await freePorts("INTERNAL_PORT");
  const optOuts = { ISOLATION: "flags", BROWSER_SANDBOX: "off" };
  await using worker = startWorkerProcess(app, {
    INTERNAL_PORT: String(INTERNAL_PORT),
    HEADLESS_SHELL_PATH: browser,
    WARM_BROWSERS: "1",
    ...optOuts,
  });
  const ask = (path: string) => fetch(`http://127.0.0.1:${INTERNAL_PORT}${path}`);
  const readiness = async () => (await ask("/readyz").catch(() => undefined))?.status;
  const row = () =>
    app.db.sql
      .selectFrom("workers")
      .innerJoin("worker_leases", "worker_id", "id")
      .select(["isolation", "unsandboxed", "launches_fail", "release"])
      .executeTakeFirst();

  await expect.poll(readiness, pollOptions).toBe(200);
  expect(await (await ask("/healthz")).text()).toBe(
    `ok\nrelease ${releaseVersion}\nisolation flags\nbrowser sandbox off\n`,
  );
  const metrics = await (await ask("/metrics")).text();
  expect(metrics).toContain('pilothouse_worker_isolation{isolation="flags",browser_sandbox="off"} 1');
  expect(metrics).toContain(`pilothouse_build_info{release="${releaseVersion}",node="${process.version}"} 1`);
  expect(await row()).toEqual({ isolation: "flags", unsandboxed: true, launches_fail: false, release: releaseVersion });
  expect(worker.output()).toContain(`"release":"${releaseVersion}"`);
  expect(worker.output()).toContain("browsers run without Chromium's sandbox (BROWSER_SANDBOX=off)");

  // The session uses the browser of the probe. The next launch fails.
  await writeFile(fault, "");
  const call = await running.caller();
  const begin = () => sessions.create(call(), create(CreateSessionRequestSchema, {}));
  const { id } = await begin();
  await expect.poll(row, pollOptions).toMatchObject({ launches_fail: true });
  expect(await readiness()).toBe(200);
  const failure = { slug: "driver-error", extensions: { launch_failed: true } };
  await expect(begin()).rejects.toMatchObject(failure);
  await sessions.destroy(call(), create(DestroySessionRequestSchema, { id }));
  await expect.poll(readiness, pollOptions).toBe(503);
  await rm(fault);
  await expect.poll(readiness, pollOptions).toBe(200);
}, 120_000);
