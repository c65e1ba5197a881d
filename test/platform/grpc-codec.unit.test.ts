import { create } from "@bufbuild/protobuf";
import { Client, credentials, Server, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CommandSchema, WorkerService } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { listenGrpc } from "../../src/platform/grpc/fleet-grpc-server.ts";
import { callServerStreaming, callUnary, toServiceDefinition } from "../../src/platform/grpc/grpc-codec.ts";

/** Call that the server has started and that only its caller ends. */
interface Begun {
  once(event: "cancelled", listener: () => void): unknown;
}

const server = new Server();
let client: Client;
let begun = Promise.withResolvers<{ ended: Promise<void> }>();
let count = 0;

const begin = (call: Begun): void => {
  count += 1;
  begun.resolve({ ended: new Promise((resolve) => call.once("cancelled", resolve)) });
};

beforeAll(async () => {
  server.addService(toServiceDefinition(WorkerService), { wait: begin, watch: begin });
  const port = await listenGrpc(server, "127.0.0.1:0");
  client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  // Only a connected channel sends a call in the same tick.
  await new Promise<void>((resolve, reject) => {
    client.waitForReady(Date.now() + 5_000, (error) => (error ? reject(error) : resolve()));
  });
});

afterAll(() => {
  client?.close();
  server.forceShutdown();
});

beforeEach(() => {
  begun = Promise.withResolvers();
  count = 0;
});

const calls = {
  unary: (signal: AbortSignal) =>
    callUnary(client, WorkerService.method.wait, create(CommandSchema), { signal, timeoutMs: 20_000 }),
  "server-streaming": async (signal: AbortSignal) => {
    const command = create(CommandSchema);
    for await (const _ of callServerStreaming(client, WorkerService.method.watch, command, { signal }));
  },
};

describe.each(Object.entries(calls))("a %s call", (_kind, call) => {
  test("ends at the server if it is cancelled in the tick that sent it", { timeout: 5_000 }, async () => {
    const gone = new AbortController();
    const answer = call(gone.signal);
    gone.abort();
    await expect(answer).rejects.toMatchObject({ code: status.CANCELLED });
    await (await begun.promise).ended;
  });

  test("ends at the server if it is cancelled later", async () => {
    const gone = new AbortController();
    const answer = call(gone.signal);
    const { ended } = await begun.promise;
    gone.abort();
    await expect(answer).rejects.toMatchObject({ code: status.CANCELLED });
    await ended;
  });

  test("is not sent if it was cancelled before", async () => {
    await expect(call(AbortSignal.abort())).rejects.toMatchObject({ code: status.CANCELLED });
    await expect(calls.unary(AbortSignal.timeout(100))).rejects.toMatchObject({ code: status.CANCELLED });
    expect(count).toBe(1);
  });
});
