import type { HttpBody } from "../gen/google/api/httpbody_pb.ts";
import type { Call } from "./call.ts";

/**
 * The bytes of a google.api.HttpBody field that a method's http rule names as its body: over REST as they come, never held
 * whole; over Connect and gRPC those of the message. Throws when the client breaks off: what was read is then incomplete.
 */
export async function* bytesOfBody(
  call: Pick<Call, "body">,
  content: HttpBody | undefined,
): AsyncGenerator<Uint8Array> {
  if (call.body) yield* call.body;
  else if (content) yield content.data;
}
