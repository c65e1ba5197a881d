import type { IncomingMessage } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import { HttpBodySchema } from "../../src/gen/google/api/httpbody_pb.ts";
import { raceSignal, unlessLate } from "../../src/platform/deadline.ts";
import { type Failure, failFields } from "../../src/platform/errors.ts";
import { sizeText } from "../message-size.ts";

// Longest pause of an upload, in milliseconds. The total time of an upload is not limited.
const maxPauseMs = 60_000;

/**
 * Yields the body of a request in chunks. Throws if the body exceeds `maxBytes`, pauses for more than 60 s, or is
 * incomplete. Also throws if `signal` aborts, because Node's iterator of a request that has already ended never
 * settles.
 */
export async function* rawBody(
  request: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let received = 0;
  // Keeps the connection open for the response if the rest is not read.
  const chunks = request.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { done, value } = await unlessLate(raceSignal(chunks.next(), signal), maxPauseMs, () => {
        throw failFields("bad-request", { body: `must not pause for more than ${maxPauseMs / 1_000} s` });
      });
      if (done) return;
      received += value.length;
      if (received > maxBytes) throw bodyTooLarge(maxBytes);
      yield value;
    }
  } finally {
    // Discards the rest of the body, because the next request on the connection follows the body.
    chunks.return?.().then(
      () => request.resume(),
      () => undefined,
    );
  }
}

/** Throws if the content length exceeds `maxBytes`. Call before the body is read. */
export function checkLength({ headers }: IncomingMessage, maxBytes: number): void {
  if (Number(headers["content-length"] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
}

/** Creates the message of a raw body: its type, without bytes. */
export function describeBody({ headers }: IncomingMessage): Message {
  return create(HttpBodySchema, { contentType: headers["content-type"] ?? "application/octet-stream" });
}

/** Creates the failure for a body above `maxBytes`. */
export function bodyTooLarge(maxBytes: number): Failure {
  return failFields("validation-failed", { body: `is larger than ${sizeText(maxBytes)}` });
}
