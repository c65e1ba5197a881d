import type { HttpBody } from "../gen/google/api/httpbody_pb.ts";
import type { Call } from "./call.ts";

/**
 * Yields the bytes of a google.api.HttpBody field that is the method's body. Over REST, bytes are streamed; over
 * Connect and gRPC, they come from the message. Throws if the client disconnects before the end.
 */
export async function* bytesOfBody(
  call: Pick<Call, "body">,
  content: HttpBody | undefined,
): AsyncGenerator<Uint8Array> {
  if (call.body) yield* call.body;
  else if (content) yield content.data;
}
