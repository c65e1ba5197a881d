import { create } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import {
  type FetchRequest,
  type FetchResponse,
  FetchResponseSchema,
  type FetchStreamResponse,
} from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import { asFailure, type Failure, fail } from "../../platform/errors.ts";
import { isServiceError, statusToFailure } from "../../platform/grpc/grpc-failure.ts";
import { isConnectionLost } from "../commands/worker-commands.ts";
import { noCapacity } from "../launch/launch-failure.ts";
import { createProxyCheck } from "../launch/proxy-validation.ts";
import { type FetchOrder, planFetch } from "./fetch-order.ts";
import { createFetchPlacement, type FetchPlacementParts } from "./fetch-placement.ts";
import { type FetchStartParts, type StartedFetch, startFetch } from "./fetch-start.ts";

export type FetchParts = FetchPlacementParts & FetchStartParts;

/** Fetches pages. The response starts when the page has been read. */
export type FetchPage = (call: Call, request: FetchRequest) => AsyncIterable<FetchStreamResponse>;

/** Creates the function that fetches pages. A browser is shared only by fetches of one account. */
export function createFetch(parts: FetchParts): FetchPage {
  const { clock } = parts;
  const checkProxy = createProxyCheck(parts);
  const { placeFetch, end, lastWorkers } = createFetchPlacement(parts);

  /** Runs the fetch on its worker, or on another worker if the first worker could not run the fetch. */
  async function run(order: FetchOrder): Promise<StartedFetch> {
    let placed = await placeFetch(order);
    order.call.charge();
    for (let isFirst = true; ; isFirst = false) {
      const beganAt = clock.monotonic();
      try {
        const started = await startFetch(parts, order, placed);
        await end(order, placed, started.header.durationMs);
        lastWorkers.set(order.call.principal.accountId, placed.worker.id);
        return started;
      } catch (error) {
        const isRefused = isServiceError(error) && canRunElsewhere(error);
        await end(order, placed, isRefused ? undefined : clock.monotonic() - beganAt);
        if (!isRefused || !isFirst) throw toFailure(error);
        placed = await placeFetch(order, placed.worker.id).catch(() => {
          throw toFailure(error);
        });
      }
    }
  }

  return async function* fetchPage(call, request) {
    const order = planFetch(call, request, parts.limits);
    const { proxy, runtime } = order.plan;
    if (proxy) await checkProxy({ proxy, runtime, traceparent: call.traceparent });
    const { first, rest } = await run(order);
    try {
      yield first;
      yield* rest;
    } finally {
      await rest.return();
    }
  };
}

/** Returns whether to try another worker, because this worker was lost, was full, or could not launch a browser. */
function canRunElsewhere(error: unknown): boolean {
  const { slug, extensions } = statusToFailure(error);
  return slug === "capacity-unavailable" || extensions.launch_failed === true || isConnectionLost(error);
}

function toFailure(error: unknown): Failure {
  if (!isServiceError(error)) return asFailure(error);
  if (error.code === status.UNIMPLEMENTED)
    return noCapacity("no worker can fetch until the workers have been upgraded: try again later");
  if (!isConnectionLost(error)) return statusToFailure(error);
  const detail = "the connection to the browser's machine broke: try again";
  return fail("driver-error", { worker_lost: true }, { detail, cause: error });
}

/** Collects a streamed fetch into one response. Calls `hold` with the bytes received so far. */
export async function collectFetch(
  parts: AsyncIterable<FetchStreamResponse>,
  hold: (bytes: number) => void,
): Promise<FetchResponse> {
  let response: FetchResponse | undefined;
  const chunks: Record<"screenshot" | "pdf", Uint8Array[]> = { screenshot: [], pdf: [] };
  let held = 0;
  for await (const { header, screenshot, pdf } of parts) {
    response ??= header;
    held += screenshot.length + pdf.length;
    hold(held);
    if (screenshot.length > 0) chunks.screenshot.push(screenshot);
    if (pdf.length > 0) chunks.pdf.push(pdf);
  }
  if (!response) throw new Error("expected the header of a fetch, got none");
  if (chunks.screenshot.length > 0) response.screenshot = Buffer.concat(chunks.screenshot);
  if (chunks.pdf.length > 0) response.pdf = Buffer.concat(chunks.pdf);
  return create(FetchResponseSchema, response);
}
