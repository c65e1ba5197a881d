import { create } from "@bufbuild/protobuf";
import { Client, credentials, Server, status } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import {
  type DriveRequest,
  DriveRequestSchema,
  type DriveResponse,
  DriveResponseSchema,
  SessionService,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import {
  addGrpcService,
  type GrpcCall,
  type GrpcHandlers,
  listenGrpc,
  type MethodsOf,
} from "../../src/platform/grpc/fleet-grpc-server.ts";
import { callBidiStreaming } from "../../src/platform/grpc/grpc-codec.ts";
import { failureToStatus, statusToFailure } from "../../src/platform/grpc/grpc-failure.ts";

type Drive = (call: GrpcCall, requests: AsyncIterable<DriveRequest>) => AsyncIterable<DriveResponse>;

const { drive } = SessionService.method;

/** Serves the one bidirectional method of a service and connects a client. */
async function connectTo(handler: Drive): Promise<Client> {
  const server = new Server();
  const refuse = () => Promise.reject(fail("feature-unavailable", {}, { detail: "none" }));
  const others = Object.fromEntries(SessionService.methods.map(({ localName }) => [localName, refuse]));
  // Cast: the test omits methods that it does not call.
  const handlers = { ...others, drive: handler } as unknown as GrpcHandlers<MethodsOf<typeof SessionService>>;
  addGrpcService(server, SessionService, handlers, { admit: () => undefined, toStatus: failureToStatus });
  const port = await listenGrpc(server, "127.0.0.1:0");
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  onTestFinished(() => {
    client.close();
    server.forceShutdown();
  });
  return client;
}

/** Returns a message of 10 kB. */
const requestOf = (number: number) => create(DriveRequestSchema, { id: String(number).padStart(10_000, "0") });
const answerOf = (number: number) => create(DriveResponseSchema, { id: String(number).padStart(10_000, "0") });

const many = 1_000;

/** Far more messages than the sockets and streams of both sides buffer, and far fewer than the total. */
const buffered = 500;

/** Yields many messages and counts the messages that were read. */
function countedSource<Message>(make: (number: number) => Message) {
  const source = {
    drawn: 0,
    async *messages() {
      while (source.drawn < many) {
        source.drawn += 1;
        yield make(source.drawn);
      }
    },
  };
  return source;
}

/** Resolves when the source is no longer read. */
async function settled(source: { readonly drawn: number }): Promise<number> {
  let before = -1;
  const hasSettled = () => {
    const isSame = source.drawn === before;
    before = source.drawn;
    return isSame && before > 0;
  };
  await expect.poll(hasSettled, { interval: 200, timeout: 10_000 }).toBe(true);
  return source.drawn;
}

/** Requests that a test sends individually, without an end. */
function openRequests() {
  let next = Promise.withResolvers<DriveRequest>();
  let hasReturned = false;
  return {
    send: (request: DriveRequest) => next.resolve(request),
    break: (error: Error) => next.reject(error),
    get hasReturned() {
      return hasReturned;
    },
    requests: {
      [Symbol.asyncIterator]: () => ({
        async next() {
          const value = await next.promise;
          next = Promise.withResolvers();
          return { done: false, value } as const;
        },
        async return() {
          hasReturned = true;
          return { done: true, value: undefined } as const;
        },
      }),
    },
  };
}

test("each request is answered before later ones are sent, and the call ends after the last", async () => {
  const client = await connectTo(async function* (_call, requests) {
    for await (const { id } of requests) yield create(DriveResponseSchema, { id });
  });
  const asked: string[] = [];
  const received = { count: 0 };
  async function* oneByOne(): AsyncGenerator<DriveRequest> {
    for (const id of ["a", "b", "c"]) {
      await expect.poll(() => received.count).toBe(asked.length);
      asked.push(id);
      yield create(DriveRequestSchema, { id });
    }
  }
  const answers: (string | undefined)[] = [];
  for await (const { id } of callBidiStreaming(client, drive, oneByOne())) {
    answers.push(id);
    received.count += 1;
  }
  expect(answers).toEqual(["a", "b", "c"]);
});

test("requests are pulled no faster than the server reads them", async () => {
  const go = Promise.withResolvers<void>();
  const client = await connectTo(async function* (_call, requests) {
    await go.promise;
    let count = 0;
    for await (const _ of requests) count += 1;
    yield create(DriveResponseSchema, { id: String(count) });
  });
  const source = countedSource(requestOf);
  const answers = callBidiStreaming(client, drive, source.messages());
  const first = answers.next();
  expect(await settled(source)).toBeLessThan(buffered);
  go.resolve();
  expect((await first).value).toMatchObject({ id: String(many) });
});

test("responses are pulled no faster than the client reads them", async () => {
  const source = countedSource(answerOf);
  const client = await connectTo(() => source.messages());
  const answers = callBidiStreaming(client, drive, openRequests().requests);
  await answers.next();
  expect(await settled(source)).toBeLessThan(buffered);
  let count = 1;
  for await (const _ of answers) count += 1;
  expect(count).toBe(many);
});

test("the server ends the call and closes the requests when the caller leaves or its signal aborts", async () => {
  for (const leave of ["break", "abort"] as const) {
    const ended = Promise.withResolvers<void>();
    const client = await connectTo(async function* ({ signal }, requests) {
      signal.addEventListener("abort", () => ended.resolve(), { once: true });
      for await (const { id } of requests) yield create(DriveResponseSchema, { id });
    });
    const caller = new AbortController();
    const open = openRequests();
    open.send(create(DriveRequestSchema, { id: "a" }));
    const answers = callBidiStreaming(client, drive, open.requests, { signal: caller.signal });
    await answers.next();
    if (leave === "break") await answers.return();
    else {
      caller.abort();
      await expect(answers.next()).rejects.toMatchObject({ code: status.CANCELLED });
    }
    await ended.promise;
    expect(open.hasReturned).toBe(true);
  }
});

test("a server failure is thrown while requests are still outstanding", async () => {
  const client = await connectTo(async function* (_call, requests) {
    for await (const { id } of requests) {
      if (id === "b") throw fail("conflict", {}, { detail: "not twice" });
      yield create(DriveResponseSchema, { id });
    }
  });
  const open = openRequests();
  open.send(create(DriveRequestSchema, { id: "a" }));
  const answers = callBidiStreaming(client, drive, open.requests);
  expect((await answers.next()).value).toMatchObject({ id: "a" });
  open.send(create(DriveRequestSchema, { id: "b" }));
  const failure = answers.next().catch((error: unknown) => statusToFailure(error));
  expect(await failure).toMatchObject({ slug: "conflict", detail: "not twice" });
});

test("a failure of the request source is thrown and ends the call at the server", async () => {
  const ended = Promise.withResolvers<void>();
  const client = await connectTo(async function* ({ signal }, requests) {
    signal.addEventListener("abort", () => ended.resolve(), { once: true });
    for await (const { id } of requests) yield create(DriveResponseSchema, { id });
  });
  const open = openRequests();
  open.send(create(DriveRequestSchema, { id: "a" }));
  const answers = callBidiStreaming(client, drive, open.requests);
  await answers.next();
  open.break(new Error("the source broke"));
  await expect(answers.next()).rejects.toThrow("the source broke");
  await ended.promise;
});

test("the server continues to respond after it stops reading requests", async () => {
  const client = await connectTo(async function* (_call, requests) {
    for await (const { id } of requests) {
      yield create(DriveResponseSchema, { id });
      break;
    }
    yield create(DriveResponseSchema, { id: "after" });
  });
  const open = openRequests();
  open.send(create(DriveRequestSchema, { id: "a" }));
  const ids: (string | undefined)[] = [];
  for await (const { id } of callBidiStreaming(client, drive, open.requests)) ids.push(id);
  expect(ids).toEqual(["a", "after"]);
});
