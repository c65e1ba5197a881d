import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readInternals } from "../../../tools/bench/load/inspector.ts";
import { chunkedBody } from "../../support/chunked-body.ts";
import { type Rest, restClient } from "../../support/rest.ts";
import { type Service, startService } from "../../support/service.ts";

const mebibyte = 1024 * 1024;
const barBytes = 8 * mebibyte;
const fileBytes = 80 * mebibyte;
const slowBytesPerSecond = 2 * mebibyte;

/** Bytes that a slow client reads or writes at once. */
const stepBytes = 64 * 1024;

/** Milliseconds between two samples of memory. */
const pollMs = 2_000;

let service: Service;
let rest: Rest;
let session: string;

beforeAll(async () => {
  service = await startService();
  rest = restClient(service);
  const { body } = await rest("/v1/sessions", {});
  session = `/v1/sessions/${body.id}`;
});

afterAll(() => service?.stop());

function begin(method: string, headers: Record<string, string> = {}) {
  const url = `${service.url}${session}/files/large.bin`;
  return request(url, { method, headers: { authorization: `Bearer ${service.key}`, ...headers } });
}

async function until(time: number): Promise<void> {
  if (time > performance.now()) await delay(time - performance.now());
}

/** Uploads 80 MiB at a maximal rate, and returns the status. */
async function upload(bytesPerSecond: number): Promise<number> {
  const sent = begin("PUT", { "content-length": String(fileBytes) });
  const answered = once(sent, "response");
  const step = randomBytes(stepBytes);
  const beganAt = performance.now();
  for (let at = 0; at < fileBytes; at += stepBytes) {
    await until(beganAt + (at / bytesPerSecond) * 1_000);
    if (!sent.write(step)) await once(sent, "drain");
  }
  sent.end();
  const [response] = await answered;
  response.resume();
  return response.statusCode;
}

/** Downloads the file at a maximal rate, and returns the number of bytes. */
async function download(bytesPerSecond: number): Promise<number> {
  const [response] = await once(begin("GET").end(), "response");
  const beganAt = performance.now();
  let bytes = 0;
  for await (const part of response) {
    bytes += part.length;
    await until(beganAt + (bytes / bytesPerSecond) * 1_000);
  }
  return bytes;
}

/** Memory of a process after a garbage collection. Total memory would depend on the collector. */
async function heldBytes(pid: number): Promise<number> {
  const { heapBytes, bufferBytes } = await readInternals(pid);
  return heapBytes + bufferBytes;
}

/** Runs a transfer, and returns the maximal growth of each process, from at least one sample. */
async function heldBy(pids: readonly number[], transfer: () => Promise<number>) {
  const more = pids.map(() => Number.NEGATIVE_INFINITY);
  const before: number[] = [];
  for (const pid of pids) before.push(await heldBytes(pid));
  let isOver = false;
  const result = transfer().finally(() => {
    isOver = true;
  });
  for (await delay(pollMs); !isOver; await delay(pollMs)) {
    for (const [index, pid] of pids.entries()) {
      const bytes = (await heldBytes(pid)) - (before[index] ?? 0);
      if (!isOver) more[index] = Math.max(more[index] ?? 0, bytes);
    }
  }
  return { result: await result, more };
}

test("gateway and worker hold less than 8 MiB in transfers of 80 MiB at 2 MiB/s", { timeout: 300_000 }, async () => {
  const worker = Number.parseInt(readFileSync(join(service.dataDir, "worker.pid"), "utf8"), 10);
  const pids = [service.pidOf("gateway"), worker];
  // First transfers cause permanent allocations that do not depend on the client's speed.
  for (const status of [201, 200]) {
    expect(await upload(Number.POSITIVE_INFINITY)).toBe(status);
    expect(await download(Number.POSITIVE_INFINITY)).toBe(fileBytes);
  }
  const up = await heldBy(pids, () => upload(slowBytesPerSecond));
  const down = await heldBy(pids, () => download(slowBytesPerSecond));
  expect([up.result, down.result]).toEqual([200, fileBytes]);
  const all = [...up.more, ...down.more];
  expect(all.every(Number.isFinite)).toBe(true);
  expect(Math.max(...all), `up ${up.more}, down ${down.more}`).toBeLessThan(barBytes);
});

test("a file is rejected during its upload when it exceeds 100 MiB", { timeout: 120_000 }, async () => {
  const init = { method: "PUT", body: chunkedBody(101 * mebibyte), duplex: "half" } as const;
  const { status, body } = await rest(`${session}/files/big`, undefined, init);
  expect([status, body.detail]).toEqual([409, "the file exceeds the maximum of 100 MiB"]);
  const { body: listed } = await rest(`${session}/files`);
  expect(listed.data.map(({ name }: { name: string }) => name)).not.toContain("big");
});

test("a session can have 768 MiB of files", { timeout: 600_000 }, async () => {
  await rest(`${session}/files/large.bin`, undefined, { method: "DELETE" });
  const put = async (name: string, mebibytes: number) => {
    const { status, body } = await rest(`${session}/files/${name}`, undefined, {
      method: "PUT",
      body: Buffer.alloc(mebibytes * mebibyte, 1),
    });
    return status === 201 ? status : [status, body.detail];
  };
  for (const name of ["a", "b", "c", "d", "e", "f", "g"]) expect(await put(name, 100)).toBe(201);
  expect(await put("h", 68)).toBe(201);
  expect(await put("i", 1)).toEqual([409, "the session's files would exceed 768 MiB together: delete files first"]);
  // Longer than measuring all slots takes after their disk has grown.
  await delay(5_000);
  expect(await rest(`${session}/navigate`, { url: "about:blank" })).toMatchObject({ status: 200 });
});
