import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { CaptureKind, type DriveResponse, SessionService } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { freshKey } from "../support/accounts.ts";
import { orderOf, twentyInOrder } from "../support/drive-commands.ts";
import { driveRequests } from "../support/drive-requests.ts";
import type { GetScene } from "./scene.ts";

type Options = { readonly baseUrl: string; readonly interceptors: Interceptor[] };

type NamedTransport = readonly [string, (options: Options) => Transport];

export const transports: readonly NamedTransport[] = [
  ["Connect over HTTP/1.1", (options) => createConnectTransport({ ...options, httpVersion: "1.1" })],
  ["Connect over HTTP/2", (options) => createConnectTransport({ ...options, httpVersion: "2" })],
  ["Connect in binary", (options) => createConnectTransport({ ...options, httpVersion: "2", useBinaryFormat: true })],
  ["gRPC-Web over HTTP/1.1", (options) => createGrpcWebTransport({ ...options, httpVersion: "1.1" })],
  ["gRPC-Web over HTTP/2", (options) => createGrpcWebTransport({ ...options, httpVersion: "2" })],
];

/** In every run grpc-js uses the same protocol on the same port. */
export const longTransports: readonly NamedTransport[] = [
  ["gRPC over HTTP/2", (options) => createGrpcTransport(options)],
];

function withBearer(key: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  };
}

async function failureOf(promise: Promise<unknown>): Promise<ConnectError> {
  return ConnectError.from(
    await promise.then(
      () => new Error("it did not fail"),
      (error: unknown) => error,
    ),
  );
}

/** Calls of `@connectrpc/connect-node` clients on PORT. */
export function connectTests(scene: GetScene, chosen: readonly NamedTransport[]): void {
  const clientOf = (make: (options: Options) => Transport) => {
    const { url, key } = scene().service;
    return createClient(SessionService, make({ baseUrl: url, interceptors: [withBearer(key)] }));
  };

  async function drive(make: (options: Options) => Transport, sessionId: string): Promise<DriveResponse[]> {
    const answers: DriveResponse[] = [];
    const requests = driveRequests(sessionId, scene().site.url("/form.html"));
    for await (const answer of clientOf(make).drive(requests, { timeoutMs: 20_000 })) {
      answers.push(answer);
    }
    return answers;
  }

  describe.each(chosen)("%s", (name, make) => {
    test("calls unary and server-streaming methods", async () => {
      const id = scene().sessionId;
      const client = clientOf(make);
      let headers: Headers | undefined;
      const onHeader = (received: Headers): void => {
        headers = received;
      };
      const page = await client.navigate({ id, url: scene().site.url("/plain.html") }, { onHeader });
      expect(page).toMatchObject({ title: "Plain", httpStatus: 200 });
      expect(headers?.get("x-request-id")).toMatch(/^req_/);
      expect(headers?.get("x-ratelimit-bucket")).toBe("global");
      let expected = 0;
      let received = 0;
      for await (const { header, data } of client.captureStream({ id, kind: CaptureKind.DOM_SNAPSHOT })) {
        expected += Number(header?.bytes ?? 0);
        received += data.length;
      }
      expect(received).toBe(expected);
      expect(received).toBeGreaterThan(0);
    });

    test("marks a replayed response", async () => {
      const { id } = await clientOf(make).get({ id: scene().sessionId });
      const key = freshKey();
      const replayed = async (): Promise<string | null | undefined> => {
        let mark: string | null | undefined;
        const headers = { "idempotency-key": key };
        const onHeader = (received: Headers): void => {
          mark = received.get("idempotency-replayed");
        };
        await clientOf(make).navigate({ id, url: "about:blank" }, { headers, onHeader });
        return mark;
      };
      expect([await replayed(), await replayed()]).toEqual([null, "true"]);
    });

    test("fails with google.rpc.ErrorInfo", async () => {
      const error = await failureOf(clientOf(make).get({ id: "ses_x" }));
      expect(error.code).toBe(Code.NotFound);
      expect(error.findDetails(ErrorInfoSchema)[0]).toMatchObject({ reason: "not-found", domain: "pilothouse" });
    });

    if (name.startsWith("gRPC-Web")) return;
    if (name.endsWith("HTTP/1.1")) {
      test("refuses Drive with 505", async () => {
        const { url, key } = scene().service;
        // The response arrives while the client still writes, so the client may only notice a closed connection.
        await expect(drive(make, "ses_x")).rejects.toThrow(ConnectError);
        const response = await fetch(`${url}/pilothouse.v1.SessionService/Drive`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/connect+json" },
          body: "",
        });
        expect(response.status).toBe(505);
      });
    } else {
      test("answers twenty pipelined Drive commands in order, also after the half-close", async () => {
        expect(orderOf(await drive(make, scene().sessionId))).toEqual(twentyInOrder);
      });
    }
  });
}
