import { create } from "@bufbuild/protobuf";
import { Server } from "@grpc/grpc-js";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { createChannels } from "../../src/fleet/channels.ts";
import { CommandSchema, WorkerService } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import {
  addGrpcService,
  type GrpcHandlers,
  listenGrpc,
  type MethodsOf,
} from "../../src/platform/grpc/fleet-grpc-server.ts";
import { callServerStreaming } from "../../src/platform/grpc/grpc-codec.ts";
import { failureToStatus } from "../../src/platform/grpc/grpc-failure.ts";
import { silentLog } from "../support/database.ts";

type Handlers = GrpcHandlers<MethodsOf<typeof WorkerService>>;

afterEach(() => vi.restoreAllMocks());

/** Serves a stream that sends an event each time `go` resolves. */
async function serveEvents(go: () => Promise<void>): Promise<string> {
  const server = new Server();
  const refuse = () => Promise.reject(new Error("not served here"));
  const others = Object.fromEntries(WorkerService.methods.map(({ localName }) => [localName, refuse]));
  const watch: Handlers["watch"] = async function* () {
    for (;;) {
      yield create(EventSchema, { type: "session.console" });
      await go();
    }
  };
  // Cast: the test omits methods that it does not call.
  const handlers = { ...others, watch } as unknown as Handlers;
  addGrpcService(server, WorkerService, handlers, { admit: () => undefined, toStatus: failureToStatus });
  const port = await listenGrpc(server, "127.0.0.1:0");
  onTestFinished(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}

test("connections to workers without new calls are closed, and their open streams continue", async () => {
  let next = Promise.withResolvers<void>();
  const address = await serveEvents(() => next.promise);
  const channels = createChannels(undefined, silentLog);
  onTestFinished(() => channels.close());
  const secretHash = Buffer.alloc(32);
  const worker = (id: string) => ({ id, address, secretHash });
  const first = channels.to(worker("wrk_1"));
  expect(channels.to(worker("wrk_1"))).toBe(first);
  const events = callServerStreaming(first.client, WorkerService.method.watch, create(CommandSchema));
  await events.next();

  const clock = vi.spyOn(performance, "now");
  const at = performance.now();
  clock.mockReturnValue(at + 9 * 60_000);
  channels.to(worker("wrk_2"));
  expect(channels.to(worker("wrk_1"))).toBe(first);
  clock.mockReturnValue(at + 20 * 60_000);
  channels.to(worker("wrk_3"));
  next.resolve();
  next = Promise.withResolvers();
  expect((await events.next()).value).toMatchObject({ type: "session.console" });
  expect(channels.to(worker("wrk_1"))).not.toBe(first);
  await events.return();
});
