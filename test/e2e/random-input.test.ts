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
const REQUESTS = 900;
// Commands of one session queue, so more at a time would only wait.
const AT_A_TIME = 4;

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
  await rest(`/v1/sessions/${session.id}/navigate`, { url: site.url("/form.html") });
  const urls = ["about:blank", "/form.html", "/plain.html", "/redirect"].map((path) =>
    path.startsWith("/") ? site.url(path) : path,
  );
  const requests = new RandomRequests(document, createRandom(seed), session.id, urls);
  const seen = new Set<string>();
  const failures: unknown[] = [];
  let left = REQUESTS;
  const run = async (): Promise<void> => {
    while (left-- > 0) {
      const request = requests.next();
      const { operation, ...shown } = request;
      const answer = await send(request).catch((error: unknown) => String(error));
      if (typeof answer === "string") {
        failures.push({ ...shown, answer });
        continue;
      }
      seen.add(`${operation.operationId} ${answer.status}`);
      const faults = answer.status === 500 ? ["it is 500"] : described.faultsOf(operation, answer);
      if (faults.length > 0) {
        failures.push({ ...shown, status: answer.status, text: answer.text.slice(0, 500), faults });
      }
      await tidy(request, answer);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, run));
  expect(failures).toEqual([]);
  // Every operation was refused and, but for the end of an unknown session, was carried out as well.
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  for (const { operationId, responses } of operations) {
    const success = Object.keys(responses).find((status) => status.startsWith("2"));
    expect([...seen]).toContain(`${operationId} 400`);
    if (operationId !== "SessionService_Destroy") {
      expect([...seen]).toContain(`${operationId} ${success}`);
    }
  }
  expect((await rest(`/v1/sessions/${session.id}/state`)).body.status).toBe("live");
});
