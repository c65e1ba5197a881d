import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { pssBytes } from "../../tools/bench/processes.ts";
import { restClient } from "../support/rest.ts";
import type { WarmService } from "../support/warm-service.ts";
import { leaveUnfinished, type Unfinished, type UnfinishedTransport } from "./unfinished.ts";

const mebibyte = 1024 * 1024;
// Memory in bytes that hostile messages may add to the gateway.
const maxMessages = 128 * mebibyte;
// Memory in bytes that unfinished requests may add. V8 keeps about 64 MiB of garbage buffers, and each of the 1,000
// open connections holds 48 KiB. Measured: 158 to 165 MiB for 3,000 requests per protocol. The first protocol added 115
// MiB with 3,000 requests, 126 MiB with 12,000.
const maxRequests = 224 * mebibyte;
const transportNames: readonly UnfinishedTransport[] = ["HTTP/1.1", "HTTP/2", "gRPC"];

export interface FloodSize {
  /** Unfinished requests per protocol, without a key. */
  readonly requests: number;
  /** Messages of almost 1 MiB with unknown keys, sent with a valid key. */
  readonly messages: number;
  /** Unknown keys per message. */
  readonly keys: number;
}

/** Floods of strangers and of a hostile customer of a service, during which other requests must succeed. */
export function floodTests({ requests, messages, keys }: FloodSize, start: () => Promise<WarmService>): void {
  let service: WarmService;
  const floods: Unfinished[] = [];
  beforeAll(async () => {
    service = await start();
  });
  afterAll(async () => {
    for (const flood of floods) flood.close();
    await service?.stop();
  });

  const memory = (): number => pssBytes(service.pidOf("gateway"));
  const serves = async (): Promise<void> => {
    const { status } = await restClient(service)("/v1/sessions", undefined, { signal: AbortSignal.timeout(30_000) });
    expect(status).toBe(200);
  };

  test(`${requests} unfinished requests per protocol use little memory`, { timeout: 240_000 }, async () => {
    await serves();
    const before = memory();
    const startedAt = performance.now();
    for (const [index, transport] of transportNames.entries()) {
      const address = transport === "gRPC" ? service.grpcAddress : new URL(service.url).host;
      const flood = await leaveUnfinished(transport, address, { count: requests, subnet: 10 + index });
      floods.push(flood);
      await serves();
      console.log(`${transport}: ${((memory() - before) / mebibyte).toFixed(0)} MiB more, ${flood.open()} open`);
      expect(memory() - before).toBeLessThan(maxRequests);
    }
    const isOver = (): boolean => floods.every((flood) => flood.open() === 0);
    expect(await waitUntil(isOver, { timeout: 90_000, every: 250 })).toBe(true);
    console.log(`all closed after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
    await serves();
  });

  test(`${messages} hostile messages with unread responses use little memory`, { timeout: 240_000 }, async () => {
    await serves();
    const before = memory();
    const name = "x".repeat(Math.floor(mebibyte / keys) - 11);
    const hostile = `{${Array.from({ length: keys }, (_, index) => `"${name}${index}":0`).join(",")}}`;
    expect(hostile.length).toBeLessThan(mebibyte);
    const clients = await Promise.all(Array.from({ length: 10 }, () => openDrive(service)));
    let sent = 0;
    const sendAll = async (client: WebSocket): Promise<void> => {
      for (let message = 0; message < messages / clients.length; message += 1) {
        await new Promise<void>((resolve) => client.send(hostile, () => resolve()));
        sent += 1;
      }
    };
    let max = 0;
    const over = new AbortController();
    const watching = waitUntil(
      async () => {
        await serves();
        max = Math.max(max, memory() - before);
        return over.signal.aborted;
      },
      { timeout: 230_000, every: 100 },
    );
    // A client that does not read may be throttled, in which case not all messages are sent.
    const isHeld = waitUntil(() => sent === messages, { timeout: 120_000, every: 50 });
    await Promise.race([Promise.all(clients.map(sendAll)), isHeld]);
    over.abort();
    await watching;
    console.log(`WebSocket: ${(max / mebibyte).toFixed(0)} MiB more at most, ${sent} messages taken`);
    for (const client of clients) client.terminate();
    expect(max).toBeLessThan(maxMessages);
  });
}

/** Opens a Drive stream whose responses are not read. */
async function openDrive({ url, key }: WarmService): Promise<WebSocket> {
  const client = new WebSocket(`${url.replace("http", "ws")}/v1/sessions/ses_none/drive`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await once(client, "open");
  client.pause();
  return client;
}
