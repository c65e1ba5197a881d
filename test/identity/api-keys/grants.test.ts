import { clone, getExtension, type JsonObject, setExtension } from "@bufbuild/protobuf";
import { MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AgentViewService } from "../../../src/gen/pilothouse/v1/agent_view_pb.ts";
import { ApiKeyService } from "../../../src/gen/pilothouse/v1/api_key_pb.ts";
import { rules } from "../../../src/gen/pilothouse/v1/options_pb.ts";
import { SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { TeamService } from "../../../src/gen/pilothouse/v1/team_pb.ts";
import { allScopes } from "../../../src/identity/api-keys/scopes.ts";
import { serve } from "../../../src/kernel/registry.ts";
import { builtServices } from "../../../tools/described-services.ts";
import { FakeWorker } from "../../support/fake-worker.ts";
import { freshEmail, fromOwnNetwork, joinTeam, type Person } from "../../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { type Rest, restClient } from "../../support/rest.ts";

const workerToken = "a token of the tests alone";

/** Methods that grant what the request proves, methods only for users, and streams that end with the bearer. */
const otherwise: readonly string[] = [
  "AuthService.LogIn",
  "AuthService.ConsumeMagicLink",
  "AuthService.Refresh",
  "OAuthService.Token",
  "MfaService.EnrolTotp",
  "TeamService.AcceptInvite",
  "LiveService.Join",
];

/** A request that grants something, and the scopes that it requires. */
interface Row {
  readonly needs: readonly string[];
  request(): Promise<JsonObject>;
  /** Slug for a caller with only these scopes. */
  readonly slug?: string;
  /** The grant is valid from all addresses, so that no key with an address list can create it. */
  readonly isEverywhere?: true;
  readonly isAboveMembers?: true;
}

let gateway: PeopleGateway;
let worker: FakeWorker;
let member: Person;
/** Calls as the developer. */
let rest: Rest;
let things: Readonly<Record<"session" | "agent" | "webhook" | "member", string>>;

beforeAll(async () => {
  gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken });
  const fleet = `unix:${gateway.app.config.dataDir}/fleet.sock`;
  worker = new FakeWorker({ control: fleet, token: workerToken, slots: 10 });
  await worker.start();
  rest = as(gateway.app.developerKey ?? "");
  await joinTeam(gateway.url, gateway.mailbox, rest);
  const made = async (path: string, body: object = {}) => (await rest(path, body)).body.id;
  const [membership] = (await rest("/v1/team/members")).body.data;
  things = {
    session: await made("/v1/sessions"),
    agent: await made("/v1/agent-sessions"),
    webhook: await made("/v1/webhooks", { url: "https://hooks.example.com/" }),
    member: membership.id,
  };
  member = await joinTeam(gateway.url, gateway.mailbox, rest);
}, 60_000);
afterAll(async () => {
  worker?.die();
  await gateway?.[Symbol.asyncDispose]();
});

const as = (key: string): Rest => restClient({ url: gateway.url, key });
const addKey = async (key: object, by = rest): Promise<{ id: string; key: string }> =>
  (await by("/v1/api-keys", { name: "granter", ...key })).body;

/** Creates a token of the developer's key with the given scopes. */
async function narrowToken(scopes: readonly string[]): Promise<string> {
  const client_secret = gateway.app.developerKey ?? "";
  const client = { client_id: `key_${client_secret.split("_")[1]}`, client_secret };
  const body = new URLSearchParams({ ...client, grant_type: "client_credentials", scope: scopes.join(" ") });
  const response = await fetch(`${gateway.url}/v1/oauth/token`, { method: "POST", body, headers: fromOwnNetwork() });
  const { access_token: token } = await response.json();
  expect(token).toMatch(/^pho_/);
  return token;
}

const rows: Readonly<Record<string, Row>> = {
  "ApiKeyService.Create": {
    needs: ["api_keys:write", "billing:write"],
    request: async () => ({ name: "made", scopes: ["billing:write"] }),
    isAboveMembers: true,
  },
  "ApiKeyService.Rotate": {
    needs: ["api_keys:write", "sessions:read"],
    request: async () => ({ id: (await addKey({ scopes: ["sessions:read"] })).id }),
    isEverywhere: true,
    isAboveMembers: true,
  },
  "TeamService.CreateInvite": {
    needs: allScopes,
    request: async () => ({ email: freshEmail(), role: "admin" }),
    isEverywhere: true,
    isAboveMembers: true,
  },
  "TeamService.UpdateMember": {
    needs: allScopes,
    request: async () => ({ id: things.member, role: "admin" }),
    isEverywhere: true,
    isAboveMembers: true,
  },
  "SessionService.CreateCdpUrl": { needs: ["sessions:write"], request: async () => ({ id: things.session }) },
  "ViewLinkService.Create": {
    needs: ["sessions:read", "sessions:write"],
    request: async () => ({ id: things.session, control: true }),
  },
  "FileService.CreateLink": {
    needs: ["sessions:read", "sessions:write"],
    request: async () => ({ id: things.session, name: "a.txt", method: "put" }),
  },
  "AgentViewService.GetGuiControlKey": {
    needs: ["agent_sessions:write", "sessions:read"],
    request: async () => ({ id: things.agent }),
  },
  "AgentViewService.CreateMediaToken": {
    needs: ["agent_sessions:read"],
    request: async () => ({ id: things.agent }),
    slug: "feature-unavailable",
    isEverywhere: true,
  },
  "WebhookService.Create": {
    needs: ["webhooks:write"],
    request: async () => ({ url: "https://hooks.example.com/" }),
  },
  "WebhookService.Update": { needs: ["webhooks:write"], request: async () => ({ id: things.webhook, active: true }) },
  "WebhookService.RotateSecret": { needs: ["webhooks:write"], request: async () => ({ id: things.webhook }) },
  "BillingService.CreatePortalSession": {
    needs: ["billing:write"],
    request: async () => ({}),
    slug: "conflict",
    isAboveMembers: true,
  },
};

const granting = builtServices.flatMap(({ methods }) => methods).filter(({ rules: { grants } }) => grants);

test("each granting method has a row", () => {
  expect(granting.map(({ name }) => name).toSorted()).toEqual([...Object.keys(rows), ...otherwise].toSorted());
});

/** Calls the granting method of a row, and returns slug and detail of the response. */
async function callAs(name: string, token: string): Promise<readonly [slug: string, detail: string]> {
  const [served, row] = [granting.find((one) => one.name === name), rows[name]];
  if (!served || !row) throw new Error(`${name} grants nothing`);
  const shown = { token, from: "198.51.100.7" };
  const { answer, slug } = await gateway.call("REST", served.method, await row.request(), shown);
  return [slug, String(answer?.detail ?? "")];
}

describe.each(Object.entries(rows))("%s", (name, { needs, slug, isEverywhere }) => {
  const call = (token: string) => callAs(name, token);

  test.each(needs)("rejects keys and tokens without %s", async (lacking) => {
    const scopes = needs.filter((scope) => scope !== lacking);
    const others = allScopes.filter((scope) => scope !== lacking);
    const { key } = await addKey({ scopes: others });
    for (const token of [key, await narrowToken(others), ...(scopes.length > 0 ? [await narrowToken(scopes)] : [])])
      expect(await call(token)).toEqual(["forbidden", expect.stringContaining(lacking)]);
  });

  test("accepts keys with these scopes, unless their address list is narrower than the grant", async () => {
    const addresses = ["198.51.100.0/24"];
    const limited = await call((await addKey({ scopes: needs, addresses })).key);
    const isRefused = ["forbidden", expect.stringContaining("addresses")];
    expect(limited).toEqual(isEverywhere ? isRefused : [slug ?? "", expect.anything()]);
    const unlimited = await call((await addKey({ scopes: needs })).key);
    expect(unlimited).toEqual([slug ?? "", expect.anything()]);
  });
});

const aboveMembers = Object.entries(rows).flatMap(([name, { isAboveMembers }]) => (isAboveMembers ? [name] : []));
test.each(aboveMembers)("%s rejects members", async (name) => {
  expect(await callAs(name, member.accessToken)).toEqual(["forbidden", expect.anything()]);
});

test("an admin, or a key of an owner, cannot create an owner", async () => {
  const admin = await joinTeam(gateway.url, gateway.mailbox, rest, "admin");
  const { key } = await addKey({}, admin.rest);
  for (const token of [admin.accessToken, key, gateway.app.developerKey]) {
    const request = { id: things.member, role: "owner" };
    const { slug, answer } = await gateway.call("REST", TeamService.method.updateMember, request, { token });
    expect([slug, answer.detail]).toEqual(["forbidden", expect.stringContaining("owner")]);
  }
});

test("links and addresses of a key are valid only from the key's addresses", async () => {
  const { key: token } = await addKey({ addresses: ["198.51.100.0/24"] });
  const shown = { token, from: "198.51.100.7" };
  const { answer: cdp } = await gateway.call("REST", SessionService.method.createCdpUrl, { id: things.session }, shown);
  const gui = await gateway.call("REST", AgentViewService.method.getGuiControlKey, { id: things.agent }, shown);
  const link = restClient({ url: gateway.url, key: gui.answer.key });
  const sessionOfAgent = (await rest(`/v1/agent-sessions/${things.agent}`)).body.session_id;
  const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
  const version = `${cdp.url.replace(/^wss?:\/\/[^/]+/, "")}/json/version`;
  const statuses = async (address: string) => [
    (await fetch(`${gateway.url}${version}`, from(address))).status,
    (await link(`/v1/sessions/${sessionOfAgent}/live/files/none.txt`, undefined, from(address))).status,
  ];
  expect(await statuses("203.0.113.9")).toEqual([403, 403]);
  expect(await statuses("198.51.100.7")).toEqual([200, 200]);
});

test("a method that returns a secret requires the option", () => {
  const { create } = ApiKeyService.method;
  const options = clone(MethodOptionsSchema, create.proto.options ?? expect.unreachable());
  setExtension(options, rules, { ...getExtension(options, rules), grants: false });
  const bare = { ...create, proto: { ...create.proto, options } };
  const implementation = { create: () => expect.unreachable(), list: create, rotate: create, revoke: create };
  const serveBare = () => serve({ ...ApiKeyService, methods: [bare] } as never, implementation as never);
  expect(serveBare).toThrow("needs the option grants");
});
