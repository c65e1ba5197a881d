import { beforeAll, expect, test } from "vitest";
import type { OpenApiDocument } from "../../../gateway/openapi/model.ts";
import { operationIdOf } from "../../../gateway/openapi/operation-names.ts";
import { builtServices } from "../../../tools/described-services.ts";
import type { FixtureSite } from "../../support/fixture-site.ts";
import type { Mailbox } from "../../support/mailbox.ts";
import { fromOwnNetwork, joinTeam, type Person } from "../../support/people.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import type { Service } from "../../support/service.ts";
import { smallRecipe } from "../../support/small-recipe.ts";
import type { GetScene } from "../bad-input/scene.ts";
import { doneByHand } from "./by-hand.ts";
import { type Answered, Described } from "./described.ts";
import { createRandom } from "./random.ts";
import { type RandomRequest, RandomRequests } from "./random-requests.ts";

// Seed of the requests. Set SEED to reproduce a failed run or to try other requests.
const seed = Number(process.env.SEED ?? 4);
/** Additional requests to an operation that has not both failed and succeeded yet. */
const requestsAfter = 300;
/**
 * Operations that need seconds, a step-up, session ids in the query, a kept agent session, control, a viewer, an LLM,
 * an incident e-mail, a card or a currency rate. They are tested in test/sessions, test/profiles, test/agents/sessions,
 * test/live, test/agents/llm, test/status and test/billing.
 */
const needsCompany =
  /AgentSession(Mode|Over|Back)?$|^(fetchSession|watchSessionThumbnails|putProfileStorageState|sendInput|sendMessage|cancelTurn|getTranscript|getTurn|getStepScreenshot|createMediaToken|getGuiControlKey|getByokLlmKey|testByokLlmKey|uploadLive|downloadLive|unsubscribeStatus(OneClick)?|createBillingPortalSession|[a-z]+CryptoOrder[A-Za-z]*)$/;
// Commands of a session are queued, so more concurrency would only add waiting.
const atATime = 4;

/** Operations that need a login, which the document only states in prose, or an e-mail recipient. */
const forPeople = new Set(
  builtServices.flatMap(({ methods }) =>
    methods
      .filter(({ rules, name }) => rules.loginOnly || name.endsWith("EmailPreferences"))
      .map(({ method }) => operationIdOf(method)),
  ),
);

let site: FixtureSite;
let mailbox: Mailbox;
let service: Service;
let rest: Rest;
let person: Person;

/** Returns an access token. Logs in again, or adds another member, if a random request has ended the login. */
async function freshLogin(): Promise<string> {
  const { email, password, accountId: account_id } = person;
  if ((await person.rest("/v1/account/logins")).status === 200) return person.accessToken;
  const headers = fromOwnNetwork();
  const { status, body } = await rest("/v1/auth/login", { email, password, account_id }, { headers });
  if (status !== 200) {
    person = await joinTeam(service.url, mailbox, rest);
    return person.accessToken;
  }
  person = {
    ...person,
    accessToken: body.access_token,
    rest: restClient({ url: service.url, key: body.access_token }),
  };
  return person.accessToken;
}

let addresses = 0;

/** Sends a request from a unique address, since public methods have a bucket per address. */
async function send({ operation, method, path, headers, body }: RandomRequest): Promise<Answered> {
  const bearer = forPeople.has(operation.operationId) ? await freshLogin() : service.key;
  addresses += 1;
  const address = `10.0.${addresses >> 8}.${addresses & 255}`;
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${bearer}`, "x-forwarded-for": address, ...headers },
    signal: AbortSignal.timeout(20_000),
    ...(body !== undefined && { body }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Destroys a session or agent session that a random request has created, to free its slot. */
async function tidy({ operation }: RandomRequest, { status, text }: Answered): Promise<void> {
  if (/^create(Agent)?Session$/.test(operation.operationId) && status === 201) {
    const collection = operation.operationId === "createSession" ? "sessions" : "agent-sessions";
    await rest(`/v1/${collection}/${JSON.parse(text).id}`, undefined, { method: "DELETE" });
  }
}

/** Defines a test that sends random requests, at least `requestCount` of them. */
export function randomInputTest(scene: GetScene, requestCount: number): void {
  beforeAll(() => {
    ({ service, site, mailbox, person } = scene());
    rest = restClient(service);
  });

  test(
    `random requests (SEED=${seed}) only return responses described by the OpenAPI document`,
    {
      timeout: 180_000,
    },
    () => sendRandomRequests(requestCount),
  );
}

async function sendRandomRequests(requestCount: number): Promise<void> {
  const document: OpenApiDocument = (await rest("/v1/openapi.json")).body;
  const described = new Described(document);
  const { body: session } = await rest("/v1/sessions", {});
  const { body: profile } = await rest("/v1/profiles", { name: "Kept" });
  await rest(`/v1/sessions/${session.id}/navigate`, { url: site.url("/form.html") });
  const urls = ["about:blank", "/form.html", "/plain.html", "/redirect"].map((path) =>
    path.startsWith("/") ? site.url(path) : path,
  );
  const { body: apiKey } = await rest("/v1/api-keys", { name: "Kept" });
  const { body: webhook } = await rest("/v1/webhooks", { url: "https://hooks.example.com/" });
  const { body: recipe } = await rest("/v1/recipes", smallRecipe);
  const own = { sessions: session.id, profiles: profile.id, recipes: recipe.id };
  const known = { ...own, "api-keys": apiKey.id, webhooks: webhook.id };
  const requests = new RandomRequests(document, createRandom(seed), known, urls);
  const seen = new Set<string>();
  const failures: unknown[] = [];
  const attempt = async (request: RandomRequest): Promise<void> => {
    const { operation, ...shown } = request;
    const answer = await send(request).catch((error: unknown) => String(error));
    if (typeof answer === "string") {
      failures.push({ ...shown, answer });
      return;
    }
    seen.add(`${operation.operationId} ${answer.status}`);
    const faults = answer.status === 500 ? ["it is 500"] : described.faultsOf(operation, answer);
    if (faults.length > 0) failures.push({ ...shown, status: answer.status, text: answer.text.slice(0, 500), faults });
    await tidy(request, answer);
  };
  let left = requestCount;
  const run = async (): Promise<void> => {
    while (left-- > 0) await attempt(requests.next());
  };
  await Promise.all(Array.from({ length: atATime }, run));
  // Each operation has failed and succeeded, except deletions and operations done by hand.
  const operations = Object.values(document.paths).flatMap((item) => Object.entries(item));
  const missing: string[] = [];
  for (const [verb, { operationId, responses }] of operations) {
    const success = Object.keys(responses).find((status) => status.startsWith("2"));
    const isLeftOut = verb === "delete" || doneByHand.includes(operationId) || needsCompany.test(operationId);
    const wanted = [`${operationId} 400`, ...(isLeftOut ? [] : [`${operationId} ${success}`])];
    for (let more = requestsAfter; more > 0 && wanted.some((answer) => !seen.has(answer)); more -= 1) {
      await attempt(requests.next(operationId, seen.has(`${operationId} 400`) ? 0 : 0.6));
    }
    missing.push(...wanted.filter((answer) => !seen.has(answer)));
  }
  expect(missing).toEqual([]);
  expect(failures).toEqual([]);
  expect((await rest(`/v1/sessions/${session.id}/state`)).body.status).toBe("live");
}
