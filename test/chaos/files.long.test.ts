import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openFilesOf } from "../support/process-list.ts";
import type { Answer } from "../support/rest.ts";
import { DoomedService, verdict } from "./doomed-service.ts";

const mebibyte = 2 ** 20;

/** Exceeds all socket buffers on the way, so that a client that stops reading blocks the worker. */
const large = Buffer.alloc(24 * mebibyte, "large");

let doomed: DoomedService;

beforeAll(async () => {
  doomed = await DoomedService.start();
});

afterAll(() => doomed[Symbol.asyncDispose]());

const fileOf = (session: string, name: string) => `${session}/files/${name}`;

const put = (session: string, name: string, body: Uint8Array<ArrayBuffer> | string): Promise<Answer> =>
  doomed.rest(fileOf(session, name), undefined, { method: "PUT", body });

/** Opens a session with a large file and a file that uploads will replace. */
async function open(): Promise<string> {
  const session = await doomed.create();
  for (const [name, body] of [
    ["large", large],
    ["kept", "whole"],
  ] as const) {
    expect((await put(session, name, body)).status).toBe(201);
  }
  return session;
}

/** Starts a request that does not end by itself. Returns its response without reading the body. */
function begin(method: "PUT" | "GET", path: string): Promise<IncomingMessage> {
  const { url, key } = doomed.service;
  const asked = request(`${url}${path}`, { method, headers: { authorization: `Bearer ${key}` } });
  onTestFinished(() => void asked.destroy());
  if (method === "GET") asked.end();
  else asked.write(Buffer.alloc(mebibyte));
  const answer = once(asked, "response").then(([response]: IncomingMessage[]) => response as IncomingMessage);
  // A caller that awaits the response still receives the error.
  answer.catch(() => undefined);
  return answer;
}

/** Does the same in another process, where a download fills only the socket buffer. */
function beginElsewhere(method: "PUT" | "GET", path: string): ChildProcess {
  const { url, key } = doomed.service;
  const script = `
    const { request } = require("node:http");
    const [url, method, authorization] = process.argv.slice(1);
    const asked = request(url, { method, headers: { authorization } });
    if (method === "GET") asked.end();
    else asked.write(Buffer.alloc(${mebibyte}));
    asked.on("response", (response) => response.pause());
    // An unread socket does not keep a process alive.
    setInterval(() => undefined, 60_000);
  `;
  const client = spawn(process.execPath, ["--eval", script, `${url}${path}`, method, `Bearer ${key}`], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void client.kill("SIGKILL"));
  return client;
}

/** Starts an upload that replaces one file and a download of another. Waits until the worker handles both. */
async function beginBoth<Begun>(
  session: string,
  how: (method: "PUT" | "GET", path: string) => Begun,
): Promise<{ upload: Begun; download: Begun }> {
  const both = { upload: how("PUT", fileOf(session, "kept")), download: how("GET", fileOf(session, "large")) };
  const underWay = () => new Set(traces().map((path) => /incoming-|large$/.exec(path)?.[0]));
  await expect.poll(underWay, { timeout: verdict }).toEqual(new Set(["incoming-", "large"]));
  await expect.poll(openDownloads, { timeout: verdict }).toBe(1);
  return both;
}

/** Lists traces of transfers: incomplete files, and session files that the worker has open. */
function traces(): string[] {
  const slots = join(doomed.service.dataDir, "slots");
  const unfinished = (existsSync(slots) ? readdirSync(slots, { recursive: true, encoding: "utf8" }) : [])
    .filter((path) => path.includes("incoming-"))
    .map((path) => join(slots, path));
  return [...unfinished, ...openFilesOf(doomed.workerPid).filter((path) => path.startsWith(slots))];
}

/** Returns the number of downloads in the gateway's metrics. */
async function openDownloads(): Promise<number> {
  const metrics = await (await fetch(`${doomed.service.internalUrl}/metrics`)).text();
  return Number(/^pilothouse_open_streams\{[^}]*FileService[^}]*\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

async function expectNothingLeft(): Promise<void> {
  await expect.poll(traces, { timeout: verdict }).toEqual([]);
  await expect.poll(openDownloads, { timeout: verdict }).toBe(0);
}

/** Expects a session's files to be unchanged, and new transfers to succeed. */
async function expectGoesOn(session: string): Promise<void> {
  expect((await doomed.rest(fileOf(session, "kept"))).body).toBe("whole");
  expect((await put(session, "kept", "again")).status).toBe(200);
  expect((await doomed.rest(fileOf(session, "kept"))).body).toBe("again");
  const { url, key } = doomed.service;
  const whole = await fetch(`${url}${fileOf(session, "large")}`, { headers: { authorization: `Bearer ${key}` } });
  expect(Buffer.from(await whole.arrayBuffer()).equals(large)).toBe(true);
}

/** Reads a response to its end. */
async function textOf(answer: Promise<IncomingMessage>): Promise<string> {
  let text = "";
  for await (const part of (await answer).setEncoding("latin1")) text += part;
  return text;
}

test("a killed client leaves no trace of its upload and download, and both can be repeated", async () => {
  const session = await open();
  const { upload, download } = await beginBoth(session, beginElsewhere);
  for (const client of [upload, download]) client.kill("SIGKILL");
  await expectNothingLeft();
  await expectGoesOn(session);
}, 120_000);

test("a killed gateway aborts transfers without traces, and the next gateway can repeat them", async () => {
  const session = await open();
  const { upload, download } = await beginBoth(session, begin);
  await doomed.replaceSupervisor();
  await expect(upload).rejects.toThrow();
  await expect(textOf(download)).rejects.toThrow("aborted");
  await expectNothingLeft();
  await expectGoesOn(session);
}, 120_000);

test("a killed worker ends transfers at once or with an error, and leaves the next worker no traces", async () => {
  const session = await open();
  const { upload, download } = await beginBoth(session, begin);
  await doomed.kill(doomed.workerPid);
  const killedAt = performance.now();
  expect(JSON.parse(await textOf(upload))).toMatchObject({ status: 410, ended_reason: "worker_lost" });
  await expect(textOf(download)).rejects.toThrow("aborted");
  expect(performance.now() - killedAt).toBeLessThan(verdict);
  expect((await put(session, "kept", "again")).body).toMatchObject({ status: 410, ended_reason: "worker_lost" });
  await doomed.createEventually();
  await expectNothingLeft();
  await expectGoesOn(await open());
}, 120_000);

test("the service leaves nothing behind", () => doomed.expectCleanEnd());
