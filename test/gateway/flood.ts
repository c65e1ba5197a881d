import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { waitUntil } from "../../src/platform/bounded-wait.ts";
import { pssBytes } from "../../tools/bench/processes.ts";
import { restClient } from "../support/rest.ts";
import { type Service, startService } from "../support/service.ts";
import { leaveUnfinished, type Unfinished, type UnfinishedDoor } from "./unfinished.ts";

const mebibyte = 1024 * 1024;
// What hostile messages may add to the memory of the gateway.
const mostOfMessages = 128 * mebibyte;
// What unfinished requests may add. V8 leaves some 64 MiB of buffers that are garbage, and the 1,000 connections that are
// open at once hold 48 KiB each: 3,000 at each door added 158 to 165 MiB, 12,000 at the first 126 after 115 by 3,000.
const mostOfRequests = 224 * mebibyte;
const doors: readonly UnfinishedDoor[] = ["HTTP/1.1", "HTTP/2", "gRPC"];

/** How much is sent. */
export interface FloodSize {
  /** Unfinished requests without a key at each door. */
  readonly requests: number;
  /** Messages of nearly 1 MiB full of unknown keys, with a key. */
  readonly messages: number;
  /** Unknown keys of each message. */
  readonly keys: number;
}

/** What strangers, and a hostile customer, can do to a gateway that others use meanwhile. */
export function floodTests({ requests, messages, keys }: FloodSize): void {
  let service: Service;
  const floods: Unfinished[] = [];
  beforeAll(async () => {
    service = await startService();
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

  test(`${requests} unfinished requests without a key at each door`, { timeout: 240_000 }, async () => {
    await serves();
    const before = memory();
    const startedAt = performance.now();
    for (const [index, door] of doors.entries()) {
      const address = door === "gRPC" ? service.grpcAddress : new URL(service.url).host;
      const flood = await leaveUnfinished(door, address, { count: requests, subnet: 10 + index });
      floods.push(flood);
      await serves();
      console.log(`${door}: ${((memory() - before) / mebibyte).toFixed(0)} MiB more, ${flood.open()} open`);
      expect(memory() - before).toBeLessThan(mostOfRequests);
    }
    const isOver = (): boolean => floods.every((flood) => flood.open() === 0);
    expect(await waitUntil(isOver, { timeout: 90_000, every: 250 })).toBe(true);
    console.log(`all closed after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
    await serves();
  });

  test(`${messages} hostile WebSocket messages, whose answers nobody reads`, { timeout: 240_000 }, async () => {
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
    let most = 0;
    const over = new AbortController();
    const watching = waitUntil(
      async () => {
        await serves();
        most = Math.max(most, memory() - before);
        return over.signal.aborted;
      },
      { timeout: 230_000, every: 100 },
    );
    // A client that is held because it reads nothing sends no more: that is as good an end.
    const isHeld = waitUntil(() => sent === messages, { timeout: 120_000, every: 50 });
    await Promise.race([Promise.all(clients.map(sendAll)), isHeld]);
    over.abort();
    await watching;
    console.log(`WebSocket: ${(most / mebibyte).toFixed(0)} MiB more at most, ${sent} messages taken`);
    for (const client of clients) client.terminate();
    expect(most).toBeLessThan(mostOfMessages);
  });
}

/** A Drive stream whose answers are not read. */
async function openDrive({ url, key }: Service): Promise<WebSocket> {
  const client = new WebSocket(`${url.replace("http", "ws")}/v1/sessions/ses_none/drive`, {
    headers: { authorization: `Bearer ${key}` },
  });
  await once(client, "open");
  client.pause();
  return client;
}
