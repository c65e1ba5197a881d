import { once } from "node:events";
import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Client, type ClientDuplexStream, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.ts";
import { addAccount, freshKey } from "../support/accounts.ts";
import { orderOf, twentyCommands, twentyInOrder } from "../support/drive-commands.ts";
import { eventsOf } from "../support/embedded-database.ts";
import { bearer, type Loose, loadContract, methodOf, unary } from "../support/grpc-client.ts";
import type { GetScene } from "./scene.ts";

const contract = loadContract();
const method = (name: string) => methodOf(contract, "pilothouse.v1.SessionService", name);

async function readAll(stream: AsyncIterable<Loose>): Promise<Loose[]> {
  const messages: Loose[] = [];
  for await (const message of stream) {
    messages.push(message);
  }
  return messages;
}

function detailsOf(error: ServiceError | undefined): { info: unknown; fields: unknown } {
  const [bytes] = error?.metadata.get("grpc-status-details-bin") ?? [];
  const { code, details } = fromBinary(StatusSchema, Buffer.from(bytes ?? ""));
  expect(code).toBe(error?.code);
  const find = (desc: typeof ErrorInfoSchema | typeof BadRequestSchema) =>
    details.map((detail) => anyUnpack(detail, desc)).find((detail) => detail !== undefined);
  return { info: find(ErrorInfoSchema), fields: find(BadRequestSchema) };
}

/** Calls of a grpc-js client that loads the `.proto` files, on both ports. */
export function grpcTests(scene: GetScene): void {
  describe.each([
    ["GRPC_PORT", () => scene().service.grpcAddress],
    ["PORT", () => new URL(scene().service.url).host],
  ])("grpc-js on %s", (_, address) => {
    let client: Client;
    beforeAll(() => {
      client = new Client(address(), credentials.createInsecure());
    });
    afterAll(() => client.close());
    const call = (name: string, request: Loose, key = scene().service.key) =>
      unary(client, method(name), request, bearer(key));
    const serverStream = (name: string, request: Loose) => {
      const { path, requestSerialize, responseDeserialize } = method(name);
      const options = { deadline: Date.now() + 20_000 };
      const metadata = bearer(scene().service.key);
      return client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, metadata, options);
    };
    const drive = (): ClientDuplexStream<Loose, Loose> => {
      const { path, requestSerialize, responseDeserialize } = method("Drive");
      const options = { deadline: Date.now() + 20_000 };
      const metadata = bearer(scene().service.key);
      return client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata, options);
    };

    test("creates, drives and destroys a session, and Watch resumes after an event and ends with it", async () => {
      const created = await call("Create", { labels: { made: "by grpc" } });
      expect(created.answer).toMatchObject({ status: "SESSION_STATUS_LIVE", labels: { made: "by grpc" } });
      expect(created.headers).toMatchObject({ "x-ratelimit-bucket": "sessions:create" });
      expect(created.headers["x-request-id"]).toMatch(/^req_/);
      const { id } = created.answer;
      const { answer } = await call("Navigate", { id, url: scene().site.url("/plain.html") });
      expect(answer).toMatchObject({ title: "Plain", http_status: 200 });
      expect((await call("GetState", { id })).answer.url).toBe(scene().site.url("/plain.html"));
      const [first] = await eventsOf(scene().service, id);
      const types: string[] = [];
      for await (const event of serverStream("Watch", { id, after_event_id: first?.id })) {
        if (event.type === "session.live") expect((await call("Destroy", { id })).answer).toEqual({});
        types.push(event.type);
      }
      expect(types).toEqual(["session.live", "session.completed"]);
      const { error } = await call("Get", { id });
      expect(error?.code).toBe(status.FAILED_PRECONDITION);
      expect(detailsOf(error).info).toMatchObject({
        reason: "session-destroyed",
        domain: "pilothouse",
        metadata: { ended_reason: "destroyed" },
      });
    });

    test("marks a replayed response of a stored and of a session method", async () => {
      const id = scene().sessionId;
      for (const [sent, request] of [
        [methodOf(contract, "pilothouse.v1.ProfileService", "Create"), { name: "Once" }],
        [method("Interact"), { id, scroll: { dy: 1 } }],
      ] as const) {
        const metadata = bearer(scene().service.key);
        metadata.set("idempotency-key", freshKey());
        const first = await unary(client, sent, request, metadata);
        const again = await unary(client, sent, request, metadata);
        expect([first.error, again.error]).toEqual([undefined, undefined]);
        const marks = [first, again].map(({ headers }) => headers["idempotency-replayed"]);
        expect([marks, again.answer]).toEqual([[undefined, "true"], first.answer]);
      }
    });

    test("refuses calls with a Retry-After when the bucket is empty", async () => {
      const key = await addAccount(scene().service);
      // The bucket of the free tier holds 60 tokens.
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => call("List", {}, key)));
      const { error, headers } = outcomes.find((outcome) => outcome.error) ?? {};
      expect(error?.code).toBe(status.RESOURCE_EXHAUSTED);
      expect({ ...headers, ...error?.metadata.getMap() }).toMatchObject({
        "retry-after": expect.stringMatching(/^\d+$/),
      });
    });

    test("returns google.rpc details with errors", async () => {
      const invalid = await call("Navigate", { id: "ses_x", url: "" });
      expect(invalid.error?.code).toBe(status.INVALID_ARGUMENT);
      const { info, fields } = detailsOf(invalid.error);
      expect(info).toMatchObject({ reason: "validation-failed", domain: "pilothouse" });
      expect(fields).toMatchObject({ fieldViolations: [{ field: "url", description: "is required" }] });
      const refused = await call("List", {}, "phk_nothing");
      expect(refused.error?.code).toBe(status.UNAUTHENTICATED);
      expect(detailsOf(refused.error).info).toMatchObject({ reason: "invalid-key" });
      const unknown = await call("Get", { id: "no\0such" });
      expect(unknown.error?.code).toBe(status.NOT_FOUND);
    });

    test("CaptureStream sends a header and the announced number of bytes", async () => {
      const request = { id: scene().sessionId, kind: "CAPTURE_KIND_SCREENSHOT" };
      const [first, ...chunks] = await readAll(serverStream("CaptureStream", request));
      expect(first.header).toMatchObject({ content_type: "image/png", width: 1280, height: 720 });
      const bytes = Buffer.concat([first, ...chunks].map(({ data = "" }) => Buffer.from(data)));
      expect(bytes.length).toBe(Number(first.header.bytes));
      expect(bytes.toString("latin1", 1, 4)).toBe("PNG");
    });

    test("Drive answers twenty pipelined commands in order, also after the half-close", async () => {
      const stream = drive();
      for (const command of twentyCommands(scene().site.url("/form.html"))) {
        stream.write({ ...command, session_id: scene().sessionId });
      }
      stream.end();
      const ended = once(stream, "status");
      const answers = await readAll(stream);
      expect(orderOf(answers)).toEqual(twentyInOrder);
      expect(answers.find((answer) => answer.id === "8").error).toMatchObject({
        status: 400,
        detail: "action.selector: is not a CSS selector",
      });
      const [{ code }] = await ended;
      expect(code).toBe(status.OK);
    });
  });
}
