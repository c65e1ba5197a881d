import { afterAll, beforeAll, expect, test } from "vitest";
import type { OpenApiDocument } from "../../gateway/openapi/model.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { type Rest, restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";
import { type Answered, Described } from "./support/described.ts";
import { createRandom } from "./support/random.ts";
import { type RandomRequest, RandomRequests } from "./support/random-requests.ts";

// The same requests in every run; SEED=<number> tries others, and names a run that failed.
const seed = Number(process.env.SEED ?? 4);
const requestCount = 600;
/** How many more are made to an operation that has not been both refused and carried out. */
const requestsAfter = 100;
// Commands of one session queue, so more at a time would only wait.
const atATime = 4;

let site: FixtureSite;
let service: Service;
let rest: Rest;

beforeAll(async () => {
  site = await new FixtureSite().start();
  service = await startService({ EGRESS_ALLOW: site.host });
  rest = restClient(service);
});
afterAll(async () => {
  await service?.stop();
  await site?.stop();
});

async function send({ method, path, headers, body }: RandomRequest): Promise<Answered> {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${service.key}`, ...headers },
    signal: AbortSignal.timeout(20_000),
    ...(body !== undefined && { body }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Ends what a random create has made, so that it holds no slot. */
async function tidy({ operation }: RandomRequest, { status, text }: Answered): Promise<void> {
  if (operation.operationId === "SessionService_Create" && status === 201) {
    await rest(`/v1/sessions/${JSON.parse(text).id}`, undefined, { method: "DELETE" });
  }
}

test(`random requests (SEED=${seed}) get no answer that the OpenAPI document does not describe`, {
  timeout: 120_000,
}, async () => {
  const document: OpenApiDocument = (await rest("/v1/openapi.json")).body;
  const described = new Described(document);
  const { body: session } = await rest("/v1/sessions", {});
  const { body: profile } = await rest("/v1/profiles", { name: "Kept" });
  await rest(`/v1/sessions/${session.id}/navigate`, { url: site.url("/form.html") });
  const urls = ["about:blank", "/form.html", "/plain.html", "/redirect"].map((path) =>
    path.startsWith("/") ? site.url(path) : path,
  );
  const requests = new RandomRequests(
    document,
    createRandom(seed),
    { sessions: session.id, profiles: profile.id },
    urls,
  );
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
  // Every operation was refused and, but for the end of what is kept for the others, was carried out as well.
  const operations = Object.values(document.paths).flatMap((item) => Object.entries(item));
  for (const [verb, { operationId, responses }] of operations) {
    const success = Object.keys(responses).find((status) => status.startsWith("2"));
    const wanted = [`${operationId} 400`, ...(verb === "delete" ? [] : [`${operationId} ${success}`])];
    for (let more = requestsAfter; more > 0 && wanted.some((answer) => !seen.has(answer)); more -= 1) {
      await attempt(requests.next(operationId));
    }
    expect([...seen]).toEqual(expect.arrayContaining(wanted));
  }
  expect(failures).toEqual([]);
  expect((await rest(`/v1/sessions/${session.id}/state`)).body.status).toBe("live");
});
