import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import type { FakeWorker } from "../support/fake-worker.ts";
import type { Rest } from "../support/rest.ts";

/** A delivery as its receiver sees it. */
export interface Arrival {
  /** Path that it came to: the endpoint's. */
  readonly path: string;
  readonly eventId: string;
  readonly type: string;
  /** The session that it is about, and its place among the events of that session; of keys: empty, and NaN. */
  readonly session: string;
  readonly number: number;
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Answers a delivery: with a status, or, where it gives `undefined`, by itself. */
export type Respond = (arrival: Arrival, response: ServerResponse) => number | undefined;

/** Receives webhooks of many endpoints on loopback. */
export interface Endpoints extends AsyncDisposable {
  readonly port: number;
  /** What has come, in its order. */
  readonly arrivals: Arrival[];
  /** Those of one path. */
  at(path: string): Arrival[];
  url(path: string): string;
  /** From now on answers like this. */
  answer: Respond;
}

/** Starts to receive. */
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
    ...{ port, arrivals, answer },
    at: (path) => arrivals.filter((arrival) => arrival.path === path),
    url: (path) => `http://127.0.0.1:${port}${path}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
  return endpoints;
}

/** Registers an endpoint, and gives its identifier. */
export async function register(rest: Rest, url: string, fields: object = {}): Promise<string> {
  const { status, body } = await rest("/v1/webhooks", { url, ...fields });
  if (status !== 201) throw new Error(`the endpoint was refused: ${JSON.stringify(body)}`);
  return body.id;
}

/** Causes an event by making a key and revoking it, and gives its subject: the key's identifier. */
export async function causeEvent(rest: Rest): Promise<string> {
  const { body: key } = await rest("/v1/api-keys", { name: "short-lived" });
  const { status } = await rest(`/v1/api-keys/${key.id}`, undefined, { method: "DELETE" });
  if (status >= 300) throw new Error(`a key was not revoked: ${status}`);
  return key.id;
}

/** Has a worker tell of challenges that a session has met: events of one subject, numbered from one number to another. */
export async function meetChallenges(worker: FakeWorker, sessionId: string, [first, last]: readonly [number, number]) {
  const events = Array.from({ length: last - first + 1 }, (_, index) => {
    const url = `https://example.com/#${first + index}`;
    const value = { challenge: "generic", url, paused: false };
    const event = { case: "challengeSeen", value } as const;
    return { sessionId, placementEpoch: 1n, sequence: BigInt(first + index), event };
  });
  await worker.report(...events);
}

/** Reads the log of an endpoint, the oldest delivery first. */
export async function readLog(rest: Rest, endpointId: string) {
  const { body } = await rest(`/v1/webhooks/${endpointId}/deliveries?limit=100`);
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  return (body.data as any[]).toReversed();
}

/** Brings a delivery of an endpoint that nobody answers for to `dlq`, and gives its identifier. The endpoint is active again. */
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
