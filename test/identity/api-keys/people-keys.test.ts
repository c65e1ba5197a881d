import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { restClient } from "../../support/rest.ts";
import { transportNames } from "../../support/transport-calls.ts";

let gateway: PeopleGateway;

beforeAll(async () => {
  gateway = await startPeopleGateway();
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

test("a key belongs to its creator, as do the keys that it creates", async () => {
  const { rest, userId } = await gateway.signUp();
  const { status, body } = await rest("/v1/api-keys", { name: "CI" });
  expect([status, body.created_by, body.created_by_key]).toEqual([201, userId, null]);
  const made = await restClient({ url: gateway.url, key: body.key })("/v1/api-keys", { name: "made by CI" });
  expect([made.status, made.body.created_by, made.body.created_by_key]).toEqual([201, userId, body.id]);
  const { data } = (await rest("/v1/account/audit-log?action=api_key.create")).body;
  expect(data.map(({ actor }: { actor: { type: string; name: string } }) => [actor.type, actor.name])).toEqual([
    ["api_key", "CI"],
    ["user", expect.stringContaining("@example.com")],
  ]);
});

test.each(transportNames)("problems of keys are as documented over %s", async (transport) => {
  const { create, revoke, rotate } = ApiKeyService.method;
  const { accessToken: token } = await gateway.signUp();
  const made = await gateway.call(transport, create, { name: "one" }, { token });
  expect(made.slug).toBe("");
  const key: string = made.answer.key;
  const second = await gateway.call(transport, create, { name: "two", scopes: ["sessions:read"] }, { token });
  const full = await gateway.call(transport, create, { name: "three" }, { token });
  expect([full.slug, full.extensions]).toMatchObject(["tier-limit", { current_api_keys: "2", limit: "2" }]);
  const unscoped = await gateway.call(transport, create, { name: "four" }, { token: second.answer.key });
  expect(unscoped.slug).toBe("forbidden");
  const rotated = await gateway.call(transport, rotate, { id: second.answer.id }, { token: key });
  expect(rotated.slug).toBe("");
  expect((await gateway.call(transport, rotate, { id: second.answer.id }, { token: key })).slug).toBe("conflict");
  expect((await gateway.call(transport, revoke, { id: made.answer.id }, { token })).slug).toBe("");
  expect((await gateway.call(transport, rotate, { id: second.answer.id }, { token: key })).slug).toBe("revoked-key");
  expect((await gateway.call(transport, revoke, { id: "key_none" }, { token })).slug).toBe("not-found");
});
