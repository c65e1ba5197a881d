import type { Message } from "@bufbuild/protobuf";
import type { App } from "../src/app/app.ts";
import type { ServedMethod } from "../src/kernel/registry.ts";
import { type Broadcast, isBroadcast } from "../src/platform/broadcast.ts";
import type { CallMetrics } from "./call-metrics.ts";
import type { ClientBuffers } from "./client-buffers.ts";
import type { GatewayCall } from "./gateway-call.ts";
import type { MessageSource, MethodPolicies } from "./method-policies.ts";
import { converse, relayed, type StreamInput } from "./policies/conversation.ts";
import type { AwaitAllowance } from "./policies/message-allowance.ts";
import { type OpenStreams, untilAborted } from "./policies/open-streams.ts";
import type { PolicyParts } from "./policies/policy.ts";
import { drawForMessage } from "./policies/rate-limits.ts";

/** Runs streaming methods. */
export interface MethodStreams {
  /** Runs a server-streaming method: that of the call, or `served`, which streams the response of a unary method. */
  serverStream(call: GatewayCall, request: MessageSource, served?: ServedMethod): AsyncIterable<Message>;
  /**
   * Opens a stream that sends the same messages to all followers. The transport writes the messages, and calls
   * `release` when the stream has ended. Calls `end` when the gateway stops.
   */
  broadcast(
    call: GatewayCall,
    request: () => Message,
    end: () => void,
  ): Promise<{ readonly messages: Broadcast<Message>; release(): void }>;
  /**
   * Runs a bidirectional method. `requests` also contains faulty messages. Each receives an error in order, or ends the
   * stream if the method relays or is duplex.
   */
  bidiStream(call: GatewayCall, requests: AsyncIterable<StreamInput>): AsyncIterable<Message>;
}

export interface MethodStreamParts {
  readonly parts: PolicyParts & Pick<App, "config">;
  readonly policies: MethodPolicies;
  readonly streams: OpenStreams;
  readonly metrics: CallMetrics;
  readonly buffers: ClientBuffers;
  readonly awaitAllowance: AwaitAllowance;
  /** Ends a failed call. */
  refuse(call: GatewayCall, thrown: unknown): Promise<void>;
}

export function createMethodStreams(own: MethodStreamParts): MethodStreams {
  const { parts, policies, streams, metrics, buffers, awaitAllowance, refuse } = own;

  async function* stream(call: GatewayCall, messages: () => AsyncIterable<Message>): AsyncGenerator<Message> {
    try {
      yield* messages();
      metrics.end(call);
    } catch (thrown) {
      await refuse(call, thrown);
      throw thrown;
    } finally {
      // Records the end if the reader has stopped early.
      metrics.end(call);
    }
  }

  return {
    serverStream(call, request, served = call.served) {
      return stream(call, () => {
        if (served.kind !== "server_streaming") throw new Error(`${served.name} is not a server stream`);
        const message = policies.read(served, request);
        return streams.run(call, () => served.run(call, message));
      });
    },
    async broadcast(call, request, end) {
      const { served } = call;
      try {
        if (served.kind !== "server_streaming") throw new Error(`${served.name} is not a server stream`);
        const messages = served.run(call, policies.read(served, request));
        if (!isBroadcast(messages)) throw new Error(`${served.name} does not broadcast`);
        const releaseSlot = await streams.slot(call, end);
        const release = (): void => {
          releaseSlot();
          metrics.end(call);
        };
        return { messages, release };
      } catch (thrown) {
        await refuse(call, thrown);
        throw thrown;
      }
    },
    bidiStream(call, requests) {
      const { served } = call;
      if (served.kind !== "bidi_streaming") throw new Error(`${served.name} is not bidirectional`);
      return stream(call, () =>
        streams.run(call, (noMoreRequests) => {
          const read = untilAborted(requests, noMoreRequests);
          const awaitAllowanceOf = (bytes: number) => awaitAllowance(call, bytes);
          return served.rules.relay || served.rules.duplex
            ? relayed(call, served, read, awaitAllowanceOf)
            : converse({
                call,
                served,
                requests: read,
                awaitAllowance: awaitAllowanceOf,
                async draw(tokens) {
                  buffers.assertRoom(call);
                  await drawForMessage(call, parts, tokens);
                },
                check: (message) => policies.check(served, message),
                errorsBase: parts.config.errorsBase,
              });
        }),
      );
    },
  };
}
