import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MfaService } from "../../../src/gen/pilothouse/v1/mfa_pb.ts";
import { allScopes } from "../../../src/identity/api-keys/scopes.ts";
import { waitUntil } from "../../../src/platform/bounded-wait.ts";
import { strangeKey } from "../../e2e/support/accounts.ts";
import { authenticatorOf } from "../../support/authenticator.ts";
import { FakeWorker } from "../../support/fake-worker.ts";
import { joinTeam, type Person } from "../../support/people.ts";
import { type PeopleGateway, startPeopleGateway } from "../../support/people-gateway.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { smallRecipe } from "../../support/small-recipe.ts";
import { bringTermsIntoForce } from "../../support/terms.ts";
import type { Outcome, TransportName } from "../../support/transport-calls.ts";
import { requestTo, type Things, type WalkedMethod } from "./methods.ts";

const workerToken = "a token of the tests alone";

let gateway: PeopleGateway;
let worker: FakeWorker;
/** Client of the developer's account, which has all the things. */
let rest: Rest;
let made: Made;

const join = (role?: string): Promise<Person> => joinTeam(gateway.url, gateway.mailbox, rest, role);
const createKey = async (by: Rest, scopes?: readonly string[]): Promise<string> =>
  (await by("/v1/api-keys", { name: "walker", scopes })).body.key;

/** Things and keys of the developer's account. */
interface Made {
  readonly things: Things;
  /** Keys by the one scope that they lack. */
  readonly lacking: ReadonlyMap<string, string>;
  readonly revoked: string;
}

async function makeAll(): Promise<Made> {
  const { rest: asMember } = await join();
  const key = (await rest("/v1/api-keys", { name: "thing" })).body;
  const ended = (await rest("/v1/api-keys", { name: "ended" })).body;
  await rest(`/v1/api-keys/${ended.id}`, undefined, { method: "DELETE" });
  const session = (await rest("/v1/sessions", {})).body.id;
  const [login] = (await asMember("/v1/account/logins")).body.data;
  const [member] = (await rest("/v1/team/members")).body.data;
  const webhook = (await rest("/v1/webhooks", { url: "https://hooks.example.com/" })).body.id;
  const agent = (await rest("/v1/agent-sessions", {})).body.id;
  const things = {
    AgentInputService: agent,
    AgentSessionService: agent,
    AgentTurnService: agent,
    AgentViewService: agent,
    ApiKeyService: key.id,
    FileService: session,
    SessionLogService: session,
    LiveService: session,
    ViewLinkService: session,
    LoginService: login.id,
    ProfileService: (await rest("/v1/profiles", { name: "Shop" })).body.id,
    RecipeService: (await rest("/v1/recipes", smallRecipe)).body.id,
    SessionService: session,
    TeamService: member.id,
    WebhookService: webhook,
    CryptoOrderService: (await rest("/v1/billing/crypto-checkout/quote", { tier: "personal", crypto_currency: "btc" }))
      .body.id,
    "WebhookService.ReplayDelivery": (await rest(`/v1/webhooks/${webhook}/test`, {})).body.delivery_id,
  };
  expect(Object.entries(things).filter(([, id]) => typeof id !== "string")).toEqual([]);
  const lacking = new Map<string, string>();
  for (const scope of allScopes)
    lacking.set(
      scope,
      await createKey(
        rest,
        allScopes.filter((other) => other !== scope),
      ),
    );
  return { things, lacking, revoked: ended.key };
}

const isGuarded = ({ needs }: WalkedMethod) => !needs.has("nothing");
const scopeOf = ({ needs }: WalkedMethod) => [...needs].find((need) => need.includes(":"));

type Answers = readonly (readonly [name: string, slug: string])[];
const all = (slug: string, methods: readonly WalkedMethod[]): Answers => methods.map(({ name }) => [name, slug]);
const named = (answers: Answers, slug: string) => answers.filter((answer) => answer[1] === slug).map(([name]) => name);

// gRPC on PORT is Connect's handler with another encoding.
const walked: readonly TransportName[] = ["REST", "Connect", "gRPC on GRPC_PORT"];

/** Calls all methods in order with the credentials of one caller. */
async function walk(
  transport: TransportName,
  methods: readonly WalkedMethod[],
  token: string | undefined | ((method: WalkedMethod) => string | undefined),
  things?: Things,
): Promise<(Outcome & { readonly name: string })[]> {
  const outcomes = [];
  for (const method of methods) {
    const shown = { token: typeof token === "function" ? token(method) : token };
    const outcome = await gateway.call(transport, method.served.method, requestTo(method, transport, things), shown);
    outcomes.push({ ...outcome, name: method.name });
  }
  return outcomes;
}
const slugsOf = (outcomes: Awaited<ReturnType<typeof walk>>): Answers => outcomes.map(({ name, slug }) => [name, slug]);

/** Calls methods over each protocol as each kind of caller. */
export function walkRegistry(methodsOf: (transport: TransportName) => readonly WalkedMethod[]): void {
  beforeAll(async () => {
    gateway = await startPeopleGateway({ WORKER_TOKEN: workerToken });
    worker = new FakeWorker({
      control: `unix:${gateway.app.config.dataDir}/fleet.sock`,
      token: workerToken,
      slots: 50,
    });
    await worker.start();
    rest = restClient({ url: gateway.url, key: gateway.app.developerKey ?? "" });
    made = await makeAll();
  }, 60_000);
  afterAll(async () => {
    worker?.die();
    await gateway?.[Symbol.asyncDispose]();
  });

  describe.each(walked)("over %s", (transport) => {
    const methods = methodsOf(transport);
    const guarded = methods.filter(isGuarded);
    const aboutOne = guarded.filter(({ variables }) => variables.length > 0);

    test("a call without a credential is refused with unauthorized by every method", async () => {
      expect(slugsOf(await walk(transport, guarded, undefined, made.things))).toEqual(all("unauthorized", guarded));
    });

    test("an unknown key is refused with invalid-key by every method", async () => {
      expect(slugsOf(await walk(transport, guarded, strangeKey(), made.things))).toEqual(all("invalid-key", guarded));
    });

    test("a public method ignores an unknown key", async () => {
      const open = methods.filter((method) => !isGuarded(method));
      const slugs = slugsOf(await walk(transport, open, strangeKey()));
      expect(named(slugs, "invalid-key")).toEqual([]);
    });

    test("a revoked key is refused with revoked-key by every method", async () => {
      expect(slugsOf(await walk(transport, guarded, made.revoked, made.things))).toEqual(all("revoked-key", guarded));
    });

    test("a key is forbidden if it lacks the scope or the method needs a login", async () => {
      const keyOf = (method: WalkedMethod) => made.lacking.get(scopeOf(method) ?? "billing:write");
      expect(slugsOf(await walk(transport, guarded, keyOf, made.things))).toEqual(all("forbidden", guarded));
    });

    test("another account finds no thing of this account by any method", async () => {
      const stranger = await gateway.signUp();
      const forKeys = aboutOne.filter(({ needs }) => !needs.has("a login"));
      const key = await createKey(stranger.rest);
      for (const [token, methods] of [
        [stranger.accessToken, aboutOne],
        [key, forKeys],
      ] as const) {
        // A free account's bucket has too few tokens for all methods.
        for (let at = 0; at < methods.length; at += 50) {
          gateway.pass(60_000);
          const some = methods.slice(at, at + 50);
          expect(slugsOf(await walk(transport, some, token, made.things))).toEqual(all("not-found", some));
        }
      }
    });

    test("a login without a step-up is refused by exactly the methods that need one", async () => {
      const { email, password, accountId, accessToken: token } = await join("admin");
      const { enrolTotp, confirmTotp } = MfaService.method;
      const enrolled = await gateway.call("REST", enrolTotp, { password }, { token });
      const code = authenticatorOf(enrolled.answer.otpauth_url)(gateway.now());
      expect((await gateway.call("REST", confirmTotp, { code }, { token })).slug).toBe("");
      const { body: login } = await rest("/v1/auth/login", { email, password, account_id: accountId });
      const outcomes = await walk(transport, guarded, login.access_token);
      const asked = outcomes.filter(({ slug }) => slug === "mfa-step-up-required");
      expect(asked.map(({ name }) => name)).toEqual(
        guarded.filter(({ needs }) => needs.has("a step-up")).map(({ name }) => name),
      );
      for (const { extensions } of asked) expect(extensions).toEqual({ requires_mfa_step_up: "true" });
      const withKey = await walk(
        transport,
        guarded.filter(({ needs }) => needs.has("a step-up") && !needs.has("a login")),
        gateway.app.developerKey,
      );
      expect(named(slugsOf(withKey), "mfa-step-up-required")).toEqual([]);
    });
  });

  test("a removed member and the member's key are refused with revoked-key by every method", async () => {
    const person = await join("admin");
    const key = await createKey(person.rest);
    const { data } = (await rest("/v1/team/members")).body;
    const { id } = data.find((member: { user_id: string }) => member.user_id === person.userId);
    expect((await rest(`/v1/team/members/${id}`, undefined, { method: "DELETE" })).status).toBe(204);
    for (const token of [person.accessToken, key]) {
      const isEnded = async () => (await restClient({ url: gateway.url, key: token })("/v1/sessions")).status === 401;
      expect(await waitUntil(isEnded, { timeout: 20_000, every: 20 })).toBe(true);
      for (const transport of walked) {
        const guarded = methodsOf(transport).filter(isGuarded);
        expect([transport, ...slugsOf(await walk(transport, guarded, token, made.things))]).toEqual([
          transport,
          ...all("revoked-key", guarded),
        ]);
      }
    }
  });

  // These tests run last, since the account accepts no terms from here on.
  describe("unaccepted terms", () => {
    const url = "https://example.com/terms";
    let member: Person;

    beforeAll(async () => {
      member = await join();
      await bringTermsIntoForce(gateway, { id: "first", url });
      // A gateway reloads the revisions within two weeks.
      const isAsked = async () => (await rest("/v1/profiles")).status === 403;
      expect(await waitUntil(isAsked, { timeout: 10_000, every: 50 })).toBe(true);
    });

    test.each(walked)("block every method over %s except those that do not need them", async (transport) => {
      const guarded = methodsOf(transport).filter(isGuarded);
      const { email, password, accountId } = member;
      const { body: login } = await rest("/v1/auth/login", { email, password, account_id: accountId });
      const bearerFor = ({ needs }: WalkedMethod) =>
        needs.has("a login") ? login.access_token : gateway.app.developerKey;
      const outcomes = await walk(transport, guarded, bearerFor);
      const asked = outcomes.filter(({ slug }) => slug === "legal-acceptance-required");
      expect(asked.map(({ name }) => name)).toEqual(
        guarded.filter(({ needs }) => !needs.has("no terms")).map(({ name }) => name),
      );
      for (const { extensions } of asked) expect(extensions).toEqual({ revision_id: "first", url });
    });
  });
}
