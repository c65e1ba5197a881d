import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import type { FakeWorker } from "../support/fake-worker.ts";
import type { Rest } from "../support/rest.ts";

export interface Arrival {
  /** Path of the endpoint. */
  readonly path: string;
  readonly eventId: string;
  readonly type: string;
  /** Session of the event, and the event's number within the session. Empty and NaN for events of API keys. */
  readonly session: string;
  readonly number: number;
  readonly at: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Returns the response status, or `undefined` if the function responds on its own. */
export type Respond = (arrival: Arrival, response: ServerResponse) => number | undefined;

/** Receives webhooks of many endpoints on loopback. */
export interface Endpoints extends AsyncDisposable {
  readonly port: number;
  /** Deliveries in order of arrival. */
  readonly arrivals: Arrival[];
  /** Returns the deliveries to a path. */
  at(path: string): Arrival[];
  url(path: string): string;
  /** Responder, which tests may replace. */
  answer: Respond;
}

export async function startEndpoints(answer: Respond = () => 200): Promise<Endpoints> {
  const arrivals: Arrival[] = [];
  const server = createServer(async (request, response) => {
    const at = performance.now();
    const body = await text(request);
    const { type, data } = JSON.parse(body);
    const eventId = String(request.headers["x-service-event-id"]);
    const [session, number] = [String(data.session_id ?? ""), Number(URL.parse(data.url ?? "")?.hash.slice(1) || NaN)];
    const arrival = { path: request.url ?? "", eventId, type, session, number, at, headers: request.headers, body };
    arrivals.push(arrival);
    const status = endpoints.answer(arrival, response);
    if (status !== undefined) response.writeHead(status).end(`answered with ${status}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 4_096, resolve));
  const { port } = server.address() as AddressInfo;
  const endpoints: Endpoints = {
    port,
    arrivals,
    answer,
    at: (path) => arrivals.filter((arrival) => arrival.path === path),
    url: (path) => `http://127.0.0.1:${port}${path}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
  return endpoints;
}

/** Registers an endpoint and returns its ID. */
export async function register(rest: Rest, url: string, fields: object = {}): Promise<string> {
  const { status, body } = await rest("/v1/webhooks", { url, ...fields });
  if (status !== 201) throw new Error(`the endpoint was refused: ${JSON.stringify(body)}`);
  return body.id;
}

/** Creates and revokes an API key. Returns the key's ID, which is the subject of the event. */
export async function causeEvent(rest: Rest): Promise<string> {
  const { body: key } = await rest("/v1/api-keys", { name: "short-lived" });
  const { status } = await rest(`/v1/api-keys/${key.id}`, undefined, { method: "DELETE" });
  if (status >= 300) throw new Error(`a key was not revoked: ${status}`);
  return key.id;
}

/** Reports challenges of a session from a worker, as numbered events of one subject. */
export async function meetChallenges(worker: FakeWorker, sessionId: string, [first, last]: readonly [number, number]) {
  const events = Array.from({ length: last - first + 1 }, (_, index) => {
    const url = `https://example.com/#${first + index}`;
    const value = { challenge: "generic", url, paused: false };
    const event = { case: "challengeSeen", value } as const;
    return { sessionId, placementEpoch: 1n, sequence: BigInt(first + index), event };
  });
  await worker.report(...events);
}

/** Returns the delivery log of an endpoint, oldest first. */
export async function readLog(rest: Rest, endpointId: string) {
  const { body } = await rest(`/v1/webhooks/${endpointId}/deliveries?limit=100`);
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  return (body.data as any[]).toReversed();
}

/** Moves a delivery of an unreachable endpoint to `dlq` and returns its ID. Reactivates the endpoint. */
export async function giveUpDelivery(rest: Rest, endpointId: string): Promise<string> {
  const path = `/v1/webhooks/${endpointId}`;
  const newest = async () => (await rest(`${path}/deliveries?limit=1`)).body.data[0];
  const before = (await newest())?.id;
  await causeEvent(rest);
  await expect.poll(async () => (await newest())?.id, { timeout: 20_000 }).not.toBe(before);
  await rest(path, { active: false }, { method: "PATCH" });
  await expect.poll(async () => (await newest()).status, { timeout: 20_000 }).toBe("dlq");
  await rest(path, { active: true }, { method: "PATCH" });
  return (await newest()).id;
}
