import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { doors } from "../../support/door-calls.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { restClient } from "../../support/rest.ts";

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

test.each(doors)("problems of keys are as documented over %s", async (door) => {
  const { create, revoke, rotate } = ApiKeyService.method;
  const { accessToken: token } = await gateway.signUp();
  const made = await gateway.call(door, create, { name: "one" }, { token });
  expect(made.slug).toBe("");
  const key: string = made.answer.key;
  const second = await gateway.call(door, create, { name: "two", scopes: ["sessions:read"] }, { token });
  const full = await gateway.call(door, create, { name: "three" }, { token });
  expect([full.slug, full.extensions]).toMatchObject(["tier-limit", { current_api_keys: "2", limit: "2" }]);
  const unscoped = await gateway.call(door, create, { name: "four" }, { token: second.answer.key });
  expect(unscoped.slug).toBe("forbidden");
  const rotated = await gateway.call(door, rotate, { id: second.answer.id }, { token: key });
  expect(rotated.slug).toBe("");
  expect((await gateway.call(door, rotate, { id: second.answer.id }, { token: key })).slug).toBe("conflict");
  expect((await gateway.call(door, revoke, { id: made.answer.id }, { token })).slug).toBe("");
  expect((await gateway.call(door, rotate, { id: second.answer.id }, { token: key })).slug).toBe("revoked-key");
  expect((await gateway.call(door, revoke, { id: "key_none" }, { token })).slug).toBe("not-found");
});
