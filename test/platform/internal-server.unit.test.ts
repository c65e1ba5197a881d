import { get } from "node:http";
import { networkInterfaces } from "node:os";
import { Registry } from "prom-client";
import { expect, onTestFinished, test } from "vitest";
import { createInternalServer } from "../../src/platform/internal-server.ts";
import { readWorkerConfig } from "../../workers/base/config.ts";
import { freePorts } from "../support/free-port.ts";

async function startOn(host: string): Promise<number> {
  const { INTERNAL_PORT: port } = await freePorts("INTERNAL_PORT");
  const server = createInternalServer({ host, port, isReady: () => true, metrics: new Registry() });
  await server.start();
  onTestFinished(() => server.stop());
  return port;
}

/** Sends a request with a Host header, which fetch forbids. Returns the status or the error code. */
function ask(address: string, port: number, host: string): Promise<number | string | undefined> {
  return new Promise((resolve) => {
    get({ host: address, port, path: "/metrics", headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).once("error", (error) => resolve("code" in error ? String(error.code) : error.message));
  });
}

test("the server answers only loopback names while it listens on loopback (DNS rebinding)", async () => {
  const port = await startOn("127.0.0.1");
  const hosts = [`127.0.0.1:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`, `rebound.example:${port}`];
  const statuses = await Promise.all(hosts.map((host) => ask("127.0.0.1", port, host)));
  expect(statuses).toEqual([200, 200, 200, 400]);
});

test("the server answers any name if it listens on another address", async () => {
  const port = await startOn("0.0.0.0");
  expect(await ask("127.0.0.1", port, `worker-3.internal:${port}`)).toBe(200);
});

test("a worker's server listens on the worker's address", async () => {
  const read = (WORKER_LISTEN: string) =>
    readWorkerConfig({
      WORKER_LISTEN,
      CONTROL: "10.0.0.1:8083",
      WORKER_TOKEN: "0123456789abcdef",
      INTERNAL_PORT: "8082",
    }).internal;
  expect(read("10.0.0.5:8090")).toEqual({ host: "10.0.0.5", port: 8082 });
  expect(read("[fd00::5]:8090")).toEqual({ host: "fd00::5", port: 8082 });
  expect(read("unix:/run/worker.sock")).toEqual({ host: "127.0.0.1", port: 8082 });
  const port = await startOn("127.0.0.1");
  const others = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  for (const { address } of others.filter(({ internal, family }) => !internal && family === "IPv4")) {
    expect(await ask(address, port, "localhost")).toBe("ECONNREFUSED");
  }
});
