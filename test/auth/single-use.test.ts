import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AuthService } from "../../src/gen/pilothouse/v1/auth_pb.ts";
import { ProfileService } from "../../src/gen/pilothouse/v1/profile_pb.ts";
import { startTestDatabase, type TestDatabase } from "../support/database.ts";
import type { Outcome } from "../support/door-calls.ts";
import { tokenOfMail } from "../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../support/people-gateway.ts";
import { RedisServer } from "../support/redis-server.ts";
import { testSecretsKeys } from "../support/secrets-keys.ts";

const { requestMagicLink, consumeMagicLink, refresh } = AuthService.method;
const times = 100;

let database: TestDatabase;
let redis: RedisServer;
let gateways: PeopleGateway[] = [];
beforeAll(async () => {
  [database, redis] = await Promise.all([startTestDatabase(), RedisServer.start()]);
  const sockets = encodeURIComponent(join(database.directory, "postgres", "run"));
  const env = {
    ...{ DATABASE_URL: `postgres://localhost/postgres?user=postgres&host=${sockets}`, REDIS_URL: redis.url },
    ...{ WORKER_TOKEN: randomBytes(32).toString("hex"), SECRETS_KEYS: testSecretsKeys },
    HOST: "127.0.0.1",
  };
  // Whichever of them has the lane sends the mail.
  const first = await startPeopleGateway(env);
  gateways = [first, await startPeopleGateway({ ...env, SMTP_URL: first.mailbox.url })];
}, 90_000);
afterAll(async () => {
  for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
  await database?.[Symbol.asyncDispose]();
});

function gatewayAt(index: number): PeopleGateway {
  const gateway = gateways[index % gateways.length];
  if (!gateway) throw new Error("no gateway has started");
  return gateway;
}

/** Does something many times at once, on both gateways. */
function onBoth(run: (gateway: PeopleGateway) => Promise<Outcome>): Promise<Outcome[]> {
  return Promise.all(Array.from({ length: times }, (_, index) => run(gatewayAt(index))));
}

test("of many who follow one magic link at once one logs in", async () => {
  const { email } = await gatewayAt(0).signUp();
  await gatewayAt(0).call("REST", requestMagicLink, { email });
  const token = await tokenOfMail(gatewayAt(0).mailbox, email);
  const slugs = (await onBoth((gateway) => gateway.call("REST", consumeMagicLink, { token }))).map(({ slug }) => slug);
  expect(slugs.filter((slug) => slug === "")).toHaveLength(1);
  expect(slugs.filter((slug) => slug === "invalid-auth-token")).toHaveLength(times - 1);
}, 60_000);

test("one refresh token has one successor, however many use it at once, and ends the login later", async () => {
  const { refreshToken } = await gatewayAt(0).signUp();
  const refreshBy = (gateway: PeopleGateway, token: string) => gateway.call("REST", refresh, { refresh_token: token });
  const outcomes = await onBoth((gateway) => refreshBy(gateway, refreshToken));
  expect(new Set(outcomes.map(({ slug }) => slug))).toEqual(new Set([""]));
  const pairs = new Set(outcomes.map(({ answer }) => JSON.stringify(answer)));
  expect(pairs.size).toBe(1);
  const { access_token: token, refresh_token: next } = outcomes[0]?.answer ?? {};
  expect((await refreshBy(gatewayAt(1), next)).slug).toBe("");
  expect((await refreshBy(gatewayAt(0), refreshToken)).slug).toBe("invalid-auth-token");
  const used = await gatewayAt(1).call("REST", ProfileService.method.list, {}, { token });
  expect(used.slug).toBe("revoked-key");
}, 60_000);
