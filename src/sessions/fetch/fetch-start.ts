import { create } from "@bufbuild/protobuf";
import type { Channels } from "../../fleet/channels.ts";
import { FetchCommandSchema, WorkerService } from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { FetchResponse, FetchStreamResponse } from "../../gen/pilothouse/v1/session_pb.ts";
import { Deadline } from "../../platform/deadline.ts";
import { asFailure, type Failure, fail } from "../../platform/errors.ts";
import { callServerStreaming } from "../../platform/grpc/grpc-codec.ts";
import { type FetchOrder, fetchConnectMs, fetchMarginMs } from "./fetch-order.ts";
import type { PlacedFetch } from "./fetch-placement.ts";

export interface FetchStartParts {
  readonly channels: Channels;
  /** Private addresses (`host:port`) that pages may reach. */
  readonly egressAllow: readonly string[];
  /** `host:port` that proxies are asked to connect to. */
  readonly proxyCheck: string;
}

/** A fetch after its page has been read. */
export interface StartedFetch {
  readonly first: FetchStreamResponse;
  readonly header: FetchResponse;
  readonly rest: AsyncGenerator<FetchStreamResponse, void, undefined>;
}

const pageTimeout = (): Failure =>
  fail("session-timeout", {}, { detail: "the page was not read in time: try again, or allow more time" });

/** Starts the fetch on its worker. Resolves with the first message once the page has been read. */
export async function startFetch(
  { channels, egressAllow, proxyCheck }: FetchStartParts,
  { call, request, plan, timeoutMs }: FetchOrder,
  { browserId, worker }: PlacedFetch,
): Promise<StartedFetch> {
  const link = channels.to(worker);
  await channels.waitForConnection(link, fetchConnectMs);
  using deadline = new Deadline(timeoutMs + fetchMarginMs, pageTimeout);
  const signal = AbortSignal.any([call.signal, deadline.signal]);
  const command = create(FetchCommandSchema, {
    browserId,
    accountId: call.principal.accountId,
    timeoutMs,
    traceparent: call.traceparent,
    plan,
    egressAllow: [...egressAllow],
    proxyCheck,
    request,
  });
  const { method } = WorkerService;
  const stream = callServerStreaming(link.client, method.fetch, command, { metadata: link.metadata, signal });
  try {
    const first = await stream.next();
    if (first.done || !first.value.header) throw new Error("expected the header of a fetch, got none");
    return { first: first.value, header: first.value.header, rest: stream };
  } catch (error) {
    if (signal.aborted) throw asFailure(signal.reason);
    throw error;
  }
}
