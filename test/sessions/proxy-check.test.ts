import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CheckProxyCommand, LaunchRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { CreateSessionRequestSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import { requestOf } from "../support/fake-worker.ts";
import { type SessionsApp, startSessionsApp } from "../support/sessions-app.ts";

const proxy = { server: "socks5://proxy.example:1080", username: "ada", password: "sesame" };
const request = create(CreateSessionRequestSchema, { proxy });

let running: SessionsApp;

beforeAll(async () => {
  running = await startSessionsApp({ PROXY_CHECK: "check.example:443" });
});

afterAll(() => running[Symbol.asyncDispose]());

async function countRows(): Promise<number> {
  const rows = await running.app.db.sql.selectFrom("sessions").select("id").execute();
  return rows.length;
}

test("waits for a worker that can check a proxy, and creates no session without one", async () => {
  const call = await running.caller();
  await expect(running.sessions.create(call(), request)).rejects.toMatchObject({
    slug: "capacity-unavailable",
    retryAfter: 2,
  });
  expect(await countRows()).toBe(0);
});

test("creates a session with a proxy only if its worker can use the proxy", async () => {
  const call = await running.caller();
  const asked: CheckProxyCommand[] = [];
  const created: LaunchRequest[] = [];
  let works = false;
  const worker = await running.worker({
    slots: 1,
    handlers: {
      checkProxy: async (_call, command) => {
        asked.push(command);
        if (works) return create(EmptySchema);
        throw fail("proxy-validation-failed", { reason: "auth_failed" }, { detail: "the proxy refuses the login" });
      },
      create: async (_call, command) => {
        created.push(requestOf(fleetCommands.create, command));
        return create(EmptySchema);
      },
    },
  });
  await expect(running.sessions.create(call(), request)).rejects.toMatchObject({
    slug: "proxy-validation-failed",
    detail: "the proxy refuses the login",
    extensions: { reason: "auth_failed" },
  });
  expect(await countRows()).toBe(0);
  works = true;
  const session = await running.sessions.create(call(), request);
  expect(session.proxy).toMatchObject({ server: proxy.server, username: proxy.username });
  expect(asked).toHaveLength(2);
  expect(asked[1]).toMatchObject({ proxy, target: "check.example:443", timeoutMs: 10_000 });
  expect(created).toMatchObject([{ plan: { proxy }, proxyCheck: "check.example:443" }]);
  const row = await running.app.db.sql.selectFrom("sessions").selectAll().executeTakeFirstOrThrow();
  expect(row).toMatchObject({ proxy_server: proxy.server, proxy_username: proxy.username });
  expect(JSON.stringify(row)).not.toContain(proxy.password);
  // A full worker can still check a proxy, without a free slot.
  works = false;
  await expect(running.sessions.create(call(), request)).rejects.toMatchObject({ slug: "proxy-validation-failed" });
  worker.die();
});

test("checks a proxy on another worker when the first is lost", async () => {
  const call = await running.caller();
  const dying = await running.worker({
    slots: 50,
    handlers: {
      checkProxy: () => {
        dying.die();
        return new Promise(() => undefined);
      },
    },
  });
  const helper = await running.worker({ slots: 50 });
  // The older worker wins a tie, so the dying worker receives the first check.
  await running.sessions.create(call(), request);
  expect(helper.held.size).toBe(1);
});
