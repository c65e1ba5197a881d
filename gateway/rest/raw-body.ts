import type { IncomingMessage } from "node:http";
import { create, type Message } from "@bufbuild/protobuf";
import { HttpBodySchema } from "../../src/gen/google/api/httpbody_pb.ts";
import { raceSignal, unlessLate } from "../../src/platform/deadline.ts";
import { type Failure, failFields } from "../../src/platform/errors.ts";
import { sizeText } from "../message-size.ts";

// An upload may last, but not stand still.
const stillMs = 60_000;

/**
 * Yields the body of a request as it comes, whatever its type: at most so many bytes. Ends with an error when it breaks
 * off, or `signal` says that the client has left: Node's iterator of a request that had ended before never settles.
 */
export async function* rawBody(
  request: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let received = 0;
  // The connection is still needed for the answer when nobody reads the rest.
  const chunks = request.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const { done, value } = await unlessLate(raceSignal(chunks.next(), signal), stillMs, () => {
        throw failFields("bad-request", { body: "has stopped coming" });
      });
      if (done) return;
      received += value.length;
      if (received > maxBytes) throw tooLarge(maxBytes);
      yield value;
    }
  } finally {
    // What else comes is let go by: the next request on the connection stands behind it.
    chunks.return?.().then(
      () => request.resume(),
      () => undefined,
    );
  }
}

/** Refuses a body that says it is too large before it is read. */
export function checkLength({ headers }: IncomingMessage, maxBytes: number): void {
  if (Number(headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
}

/** The message that stands for a raw body: what it is, without its bytes. */
export function describeBody({ headers }: IncomingMessage): Message {
  return create(HttpBodySchema, { contentType: headers["content-type"] ?? "application/octet-stream" });
}

/** Creates the failure of a request whose body has more than so many bytes. */
export function tooLarge(maxBytes: number): Failure {
  return failFields("validation-failed", { body: `is larger than ${sizeText(maxBytes)}` });
}
