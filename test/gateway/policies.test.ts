import { rm } from "node:fs/promises";
import { create, type DescService, type Message } from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Gateway } from "../../gateway/gateway.ts";
import type { GatewayCall } from "../../gateway/gateway-call.ts";
import { assertEnforced, policies } from "../../gateway/policies/index.ts";
import { type App, createApp } from "../../src/app/app.ts";
import { ApiKeyService } from "../../src/gen/pilothouse/v1/api_key_pb.ts";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { allScopes } from "../../src/identity/api-keys/scopes.ts";
import { createBearers } from "../../src/identity/bearers.ts";
import type { BearerKind } from "../../src/kernel/bearer-kind.ts";
import type { AuditedCall, Call, LoginPrincipal } from "../../src/kernel/call.ts";
import { type ServedService, type ServiceImplementation, serve } from "../../src/kernel/registry.ts";
import { readConfig } from "../../src/platform/config.ts";
import { fail } from "../../src/platform/errors.ts";
import { createMetrics } from "../../src/platform/metrics.ts";
import type { Tx } from "../../src/platform/postgres/database.ts";
import { hashSecret } from "../../src/platform/secrets/secrets.ts";
import { createSharedDatabase, type EmptyDatabase, makeDataDirectory, silentLog } from "../support/database.ts";
import { freePorts } from "../support/free-port.ts";
import { type Answer, restClient } from "../support/rest.ts";

/** Logins that the tests define. A lookup of "away" fails as if PostgreSQL were down. */
const logins = new Map<string, LoginPrincipal>();
const loginBearers: BearerKind = {
  prefix: "phl_",
  parse: (text) => ({ id: text.slice("phl_".length), secret: text }),
  async find(ids) {
    if (ids.includes("away")) throw fail("internal", {}, { retryAfter: 1 });
    const found = ids.flatMap((id) => {
      const principal = logins.get(id);
      const secretHash = hashSecret(`phl_${id}`);
      return principal
        ? [[id, { principal, secretHash, isRevoked: false, expiresAt: null, belongsTo: [] }] as const]
        : [];
    });
    return new Map(found);
  },
};

let directory: string;
let database: EmptyDatabase | undefined;
let real: App;
/** `real`, with the test's logins, terms and audit log. */
let app: App;
let gateway: Gateway;
let url: string;
/** Action of all methods, which return an empty message. */
let work: (call: Call, tx?: Tx) => Promise<void>;
let outstanding: { revisionId: string; url: string } | undefined;
let written: AuditedCall[];

/** Serves a service whose methods all run `work`. */
function serveWork(service: DescService): ServedService {
  const methods = service.methods.map(({ localName, output }) => [
    localName,
    async (call: GatewayCall): Promise<Message> => {
      const run = async (tx?: Tx): Promise<Message> => {
        await work(call, tx);
        return create(output);
      };
      return call.served.keepsAnswers ? call.commit(run) : run();
    },
  ]);
  // Casts, since the descriptor is only known at run time.
  return serve(
    service as GenService<GenServiceMethods>,
    Object.fromEntries(methods) as ServiceImplementation<GenService<GenServiceMethods>>,
  );
}

beforeAll(async () => {
  [directory, database] = await Promise.all([makeDataDirectory(), createSharedDatabase()]);
  const ports = await freePorts("PORT", "GRPC_PORT", "INTERNAL_PORT");
  const variables = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, String(port)]));
  const config = readConfig({ DATA_DIR: directory, ...variables, TRUSTED_PROXIES: "127.0.0.1" });
  real = createApp(config, { log: silentLog, workerProgram: null, database });
  const { bus, clock, bearers } = real;
  const more = createBearers({ kinds: [loginBearers], bus, clock, log: silentLog, registry: createMetrics() });
  app = {
    ...real,
    bearers: {
      ...bearers,
      read: (header) => (header?.includes("phl_") ? more : bearers).read(header),
      peek: (bearer) => (bearer.kind === loginBearers ? more : bearers).peek(bearer),
      lookUp: (bearer) => (bearer.kind === loginBearers ? more : bearers).lookUp(bearer),
      lookUpFresh: (bearer) => (bearer.kind === loginBearers ? more : bearers).lookUpFresh(bearer),
    },
    legal: { ...real.legal, outstanding: async () => outstanding },
    audit: { ...real.audit, append: (_tx, entry) => `aud_${written.push(entry)}` },
  };
  await real.start();
  gateway = new Gateway(app, { services: [serveWork(ApiKeyService), serveWork(AuthService)] });
  await gateway.start();
  url = `http://127.0.0.1:${ports.PORT}`;
}, 60_000);
afterAll(async () => {
  await gateway?.stop();
  await real?.stop();
  await database?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(() => {
  logins.clear();
  written = [];
  outstanding = undefined;
  work = async (call, tx) => void (tx && call.audit(tx, { subject: "key_made", data: { name: "CI" } }));
});

/** Writes an audit entry from a method without a transaction. */
const auditAlone = (call: Call) => real.db.transaction(async (tx) => void call.audit(tx, { subject: "lgn_made" }));

const developerKey = (): string => real.developerKey ?? "";
const createKey = (key: string): Promise<Answer> => restClient({ url, key })("/v1/api-keys", { name: "CI" });
const logOut = (key: string): Promise<Answer> => restClient({ url, key })("/v1/auth/logout", {});
const outcome = ({ status, body }: Answer): unknown[] => [status, body.type?.split("/").at(-1)];

function logIn(id: string, changes: Partial<LoginPrincipal> = {}): string {
  logins.set(id, {
    kind: "login",
    loginId: id,
    tokenId: id,
    userId: "usr_ada",
    name: "ada@example.com",
    accountId: "acc_ada",
    tier: "enterprise",
    overrides: [],
    role: "owner",
    scopes: new Set(allScopes),
    hasSecondFactor: false,
    steppedUpAt: undefined,
    ...changes,
  });
  return `phl_${id}`;
}

test("a step-up is required of logins with a second factor, every 10 minutes", async () => {
  const required = [403, "mfa-step-up-required"];
  expect(outcome(await createKey(developerKey()))).toEqual([201, undefined]);
  expect(outcome(await createKey(logIn("plain")))).toEqual([201, undefined]);
  expect(outcome(await createKey(logIn("never", { hasSecondFactor: true })))).toEqual(required);
  const old = logIn("old", { hasSecondFactor: true, steppedUpAt: Date.now() - 600_000 });
  expect((await createKey(old)).body).toMatchObject({ status: 403, requires_mfa_step_up: true });
  // The refusal is not cached, so the step-up takes effect.
  logIn("old", { hasSecondFactor: true, steppedUpAt: Date.now() });
  expect(outcome(await createKey(old))).toEqual([201, undefined]);
});

test("a method for people refuses API keys", async () => {
  work = auditAlone;
  const refused = await logOut(developerKey());
  expect(outcome(refused)).toEqual([403, "forbidden"]);
  expect(refused.body.detail).toContain("requires a login");
  expect((await logOut(logIn("person"))).status).toBe(204);
});

test("unaccepted terms block all methods except those needed to accept them", async () => {
  outstanding = { revisionId: "rev_2", url: "https://example.com/terms" };
  const refused = await createKey(developerKey());
  expect(outcome(refused)).toEqual([403, "legal-acceptance-required"]);
  expect(refused.body).toMatchObject({ revision_id: "rev_2", url: "https://example.com/terms" });
  work = auditAlone;
  expect((await logOut(logIn("person"))).status).toBe(204);
});

test("responses with secrets, and their refusals, are sent with no-store", async () => {
  for (const key of [developerKey(), "phk_none"]) {
    const { headers } = await createKey(key);
    expect(headers.get("cache-control")).toBe("no-store");
  }
  work = auditAlone;
  expect((await logOut(logIn("person"))).headers.get("cache-control")).toBeNull();
});

test("an audited method writes its entry, or fails with an internal error", async () => {
  const { status, headers } = await createKey(logIn("audited"));
  expect(status).toBe(201);
  expect(written).toMatchObject([
    {
      action: "api_key.create",
      subject: "key_made",
      data: { name: "CI" },
      call: {
        principal: { kind: "login", userId: "usr_ada" },
        clientAddress: "127.0.0.1",
        requestId: headers.get("x-request-id"),
      },
    },
  ]);
  work = async () => undefined;
  expect(outcome(await createKey(developerKey()))).toEqual([500, "internal"]);
});

test("a gateway refuses to serve an option that no policy enforces", () => {
  const withoutAudit = policies.filter(({ name }) => name !== "audit");
  for (const served of serveWork(ApiKeyService).methods.filter(({ rules }) => rules.audit !== ""))
    expect(() => assertEnforced(served, withoutAudit)).toThrow(`${served.name}: no policy enforces the option audit`);
});

test("a method can read the client address and set response headers", async () => {
  let seen: string | undefined;
  work = async (call) => {
    seen = call.clientAddress;
    call.setHeader("x-made-by", "the method");
  };
  const headers = { "x-forwarded-for": "192.0.2.7" };
  const answer = await restClient({ url, key: developerKey() })("/v1/api-keys", undefined, { headers });
  expect([answer.headers.get("x-made-by"), seen]).toEqual(["the method", "192.0.2.7"]);
});

test("an internal error consumes no tokens of the address", async () => {
  const headers = { "x-forwarded-for": "192.0.2.8" };
  const list = (key: string) => restClient({ url, key })("/v1/api-keys", undefined, { headers });
  const answers = await Promise.all(Array.from({ length: 50 }, () => list("phl_away")));
  const more = await Promise.all(Array.from({ length: 50 }, () => list("phl_away")));
  expect(new Set([...answers, ...more].map(({ status }) => status))).toEqual(new Set([500]));
  expect(outcome(await list("phl_nobody"))).toEqual([401, "invalid-key"]);
});

test("calls are counted by method and problem, and timed", async () => {
  await createKey(logIn("counted", { hasSecondFactor: true }));
  await createKey(developerKey());
  const metrics = await app.metrics.metrics();
  for (const problem of ["none", "mfa-step-up-required"])
    expect(metrics).toMatch(
      new RegExp(`pilothouse_calls_total\\{method="ApiKeyService.Create",problem="${problem}"\\} [1-9]`),
    );
  expect(metrics).toMatch(/pilothouse_call_seconds_count\{method="ApiKeyService.Create"\} [1-9]/);
  expect(metrics).toMatch(/pilothouse_bearer_lookups_total\{outcome="found"\} [1-9]/);
});
