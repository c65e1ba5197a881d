import {
  create,
  type DescMethod,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { ServedMethod, ServedService } from "../../src/kernel/registry.ts";
import type { ClientBuffer } from "../client-buffers.ts";
import { GatewayCall } from "../gateway-call.ts";
import type { Peer } from "../peer.ts";
import type { TransportParts } from "../transport-parts.ts";
import type { ToolContext } from "./tool.ts";

/** Maximum milliseconds of a tool call, and of each method call within it. Common clients stop waiting after 60 s. */
export const maxCallMs = 44_000;

/** Client of one request, and the buffer that counts the bytes held for its calls. */
export interface Caller {
  readonly peer: Peer;
  readonly buffer: ClientBuffer | undefined;
}

/** Returns a function that calls methods as a client. `signal` cancels the calls, except those with `isKept`. */
export type CallMethod = (caller: Caller, signal: AbortSignal | undefined) => ToolContext["call"];

/**
 * Creates a `CallMethod` for the methods of `services`. Its calls pass through all policies, as those of other
 * transports do.
 */
export function createMethodCalls(
  services: readonly ServedService[],
  { dispatcher }: Pick<TransportParts, "dispatcher">,
): CallMethod {
  const served = new Map<DescMethod, ServedMethod>(
    services.flatMap(({ methods }) => methods.map((each) => [each.method, each] as const)),
  );
  return ({ peer, buffer }, signal) =>
    async <M extends DescMethodUnary>(method: M, request: MessageInitShape<M["input"]>, { isKept = false } = {}) => {
      const target = served.get(method);
      if (!target) throw new Error(`${method} is not in this gateway's registry`);
      const call = new GatewayCall(target, peer, maxCallMs);
      call.buffer = buffer;
      const cancel = (): void => call.cancel();
      if (signal && !isKept) {
        if (signal.aborted) cancel();
        signal.addEventListener("abort", cancel, { once: true });
      }
      try {
        await dispatcher.admit(call);
        // The registry pairs each method with the implementation of its types.
        return (await dispatcher.unary(call, create(method.input, request))) as MessageShape<M["output"]>;
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    };
}
