import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { joinCapacityWaits } from "../../fleet/capacity-waits.ts";
import type { Channels } from "../../fleet/channels.ts";
import { place } from "../../fleet/placement.ts";
import {
  type BrowserPlan,
  BrowserPlanSchema,
  FetchCommandSchema,
  WorkerService,
} from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  CreateSessionRequestSchema,
  type FetchRequest,
  type FetchResponse,
  FetchResponseSchema,
  type FetchStreamResponse,
} from "../../gen/pilothouse/v1/session_pb.ts";
import type { Call } from "../../kernel/call.ts";
import type { Limits } from "../../limits/limits.ts";
import { meter } from "../../limits/usage.ts";
import { Deadline } from "../../platform/deadline.ts";
import { asFailure, type Failure, fail } from "../../platform/errors.ts";
import { callServerStreaming } from "../../platform/grpc/grpc-codec.ts";
import { isServiceError, statusToFailure } from "../../platform/grpc/grpc-failure.ts";
import { IdleMap } from "../../platform/idle-map.ts";
import type { Id, Ids } from "../../platform/ids.ts";
import type { Database } from "../../platform/postgres/database.ts";
import { assertNavigable } from "../commands/page-address.ts";
import { brokeOnTheWay } from "../commands/worker-commands.ts";
import { noCapacity, notIntegrated } from "../launch/launch-failure.ts";
import { type PlaceAttempt, type PlaceWaitParts, waitForPlace } from "../launch/place-wait.ts";
import { createProxyCheck } from "../launch/proxy-validation.ts";
import { planSession } from "../launch/session-plan.ts";
import { lockAndCount, queueAtLimit } from "../launch/slot-limit.ts";
import { leaveQueue } from "../launch/slot-wait-store.ts";
import type { SessionQuota } from "../session-quota.ts";
import { deleteFetch, type FetchBrowser, findSharedBrowser, insertFetch } from "./store.ts";

/**
 * Milliseconds. `page`: default for loading and reading the page. `launch`: maximum for the launch of the browser.
 * `margin`: for the worker's response. `connect`: for connecting to the worker.
 */
const times = { page: 30_000, launch: 30_000, margin: 5_000, connect: 2_000 };

/** Milliseconds for which a worker keeps the browser of an account after its last fetch. */
const keptFor = 20_000;

export interface FetchParts extends PlaceWaitParts {
  readonly db: Database;
  readonly ids: Ids;
  readonly channels: Channels;
  readonly limits: Limits;
  readonly quota: SessionQuota;
  /** Private addresses (`host:port`) that pages may reach. */
  readonly egressAllow: readonly string[];
  /** `host:port` that proxies are asked to connect to. */
  readonly proxyCheck: string;
}

/** Fetches pages. The response starts when the page has been read. */
export type FetchPage = (call: Call, request: FetchRequest) => AsyncIterable<FetchStreamResponse>;

/** A fetch, and what it has in common with fetches that share its browser. */
interface FetchOrder {
  readonly call: Call;
  readonly request: FetchRequest;
  readonly plan: BrowserPlan;
  readonly optionsHash: Buffer;
  /** Milliseconds for the worker to respond. */
  readonly timeoutMs: number;
}

/** A fetch that counts as running. */
interface PlacedFetch extends FetchBrowser {
  readonly id: string;
}

/** Attempt to place a fetch. */
interface Attempt {
  readonly id: Id<"fet">;
  /** Whether the fetch waits at the account's limit. */
  readonly isQueued: boolean;
  /** Worker that has refused the fetch. */
  readonly except: string | undefined;
}

/** A fetch whose page has been read. */
interface StartedFetch {
  readonly first: FetchStreamResponse;
  readonly header: FetchResponse;
  readonly rest: AsyncGenerator<FetchStreamResponse, void, undefined>;
}

/** Creates the function that fetches pages in browsers that only fetches of one account share. */
export function createFetch(parts: FetchParts): FetchPage {
  const { db, bus, clock, ids, log, channels, limits, quota } = parts;
  const checkProxy = createProxyCheck(parts);
  /** The worker of each account's last fetch. It may still have the browser. */
  const lastWorkers = new IdleMap<string, string>(keptFor, parts);

  function planFetch(call: Call, request: FetchRequest): FetchOrder {
    assertNavigable(request.url);
    const { archetype, locale, timezone, proxy } = request;
    const session = create(CreateSessionRequestSchema, {
      ...(archetype !== undefined && { archetype }),
      ...(locale !== undefined && { locale }),
      ...(timezone !== undefined && { timezone }),
      ...(proxy && { proxy }),
    });
    const plan = planSession(session, limits.of(call.principal)).browser;
    const optionsHash = createHash("sha256").update(toBinary(BrowserPlanSchema, plan)).digest();
    return { call, request, plan, optionsHash, timeoutMs: times.launch + (request.timeoutMs ?? times.page) };
  }

  /**
   * Counts and inserts the fetch in one transaction. A fetch without a browser to share is placed like a session, and
   * counts towards the tier's limit.
   */
  function tryPlace(order: FetchOrder, { id, isQueued, except }: Attempt) {
    const { call, request, plan, optionsHash, timeoutMs } = order;
    const { accountId } = call.principal;
    return db.transaction(async (tx): Promise<PlaceAttempt<PlacedFetch>> => {
      const { account, ...counts } = await lockAndCount(tx, { accountId, id });
      const tier = limits.of(account);
      await quota.admit(tx, accountId, account);
      const shared = await findSharedBrowser(tx, accountId, optionsHash);
      let browser = shared?.worker.id === except ? undefined : shared;
      if (!browser) {
        const create = { accountId, id, waitMs: request.waitForSlotMs, isQueued };
        const refused = queueAtLimit(tx, tier, counts, create);
        if (refused) return refused;
        const { runtime } = plan;
        const prefer = lastWorkers.get(accountId);
        const placement = await place(tx, {
          runtime,
          ...(except !== undefined && { except }),
          ...(prefer !== undefined && { prefer }),
        });
        if (placement.kind === "not-integrated") throw notIntegrated(runtime);
        if (placement.kind === "full") joinCapacityWaits(tx, { id, runtime });
        if (placement.kind !== "placed") return placement;
        browser = { browserId: ids.next("fbr"), worker: placement.worker };
      }
      const placed = { ...browser, id };
      const { browserId, worker } = placed;
      if (isQueued) await leaveQueue(tx, id);
      const lapsesAfter = timeoutMs + times.connect + 2 * times.margin;
      insertFetch(tx, { id, browserId, accountId, optionsHash, workerId: worker.id, tier: tier.name, lapsesAfter });
      return { kind: "placed", placed };
    });
  }

  /** Places the fetch. Waits in order at the account's limit, and then for a slot of a worker. */
  async function placeFetch(order: FetchOrder, except?: string): Promise<PlacedFetch> {
    const { signal, principal } = order.call;
    const id = ids.next("fet");
    const { placed } = await waitForPlace(parts, {
      accountId: principal.accountId,
      id,
      waitMs: order.request.waitForSlotMs,
      signal,
      failsIfFull: except !== undefined,
      tryPlace: (isQueued) => tryPlace(order, { id, isQueued, except }),
      goneAway: () => signal.reason,
    });
    return placed;
  }

  /** Ends a fetch, and adds its time to the account's usage: whole seconds, at least one. */
  async function end({ call }: FetchOrder, { id }: PlacedFetch, usedMs: number | undefined): Promise<void> {
    const { accountId } = call.principal;
    try {
      await db.transaction(async (tx) => {
        const to = await deleteFetch(tx, id);
        if (to === undefined) return;
        const from = to - Math.max(1, Math.ceil((usedMs ?? 0) / 1_000)) * 1_000;
        if (usedMs !== undefined) meter(tx, [{ accountId, from, to, isFetch: true }]);
        tx.afterCommit(() => {
          bus.publish("capacity", "");
          bus.publish("slot-freed", accountId);
        });
      });
    } catch (error) {
      // The fetch lapses, and its result is not lost.
      log.warn({ err: error, account_id: accountId }, "failed to end a fetch");
    }
  }

  /** Starts the fetch on its worker. Resolves with the first message once the page has been read. */
  async function start(
    { call, request, plan, timeoutMs }: FetchOrder,
    { browserId, worker }: PlacedFetch,
  ): Promise<StartedFetch> {
    const link = channels.to(worker);
    await channels.isBack(link, times.connect);
    using deadline = new Deadline(timeoutMs + times.margin, tooLate);
    const signal = AbortSignal.any([call.signal, deadline.signal]);
    const command = create(FetchCommandSchema, {
      browserId,
      accountId: call.principal.accountId,
      timeoutMs,
      traceparent: call.traceparent,
      plan,
      egressAllow: [...parts.egressAllow],
      proxyCheck: parts.proxyCheck,
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

  /** Runs the fetch on its worker, or on another if the worker refused it. */
  async function run(order: FetchOrder): Promise<StartedFetch> {
    let placed = await placeFetch(order);
    order.call.charge();
    for (let isFirst = true; ; isFirst = false) {
      const beganAt = clock.monotonic();
      try {
        const started = await start(order, placed);
        await end(order, placed, started.header.durationMs);
        lastWorkers.set(order.call.principal.accountId, placed.worker.id);
        return started;
      } catch (error) {
        const isRefused = isServiceError(error) && isElsewhere(error);
        await end(order, placed, isRefused ? undefined : clock.monotonic() - beganAt);
        if (!isRefused || !isFirst) throw toFailure(error);
        placed = await placeFetch(order, placed.worker.id).catch(() => {
          throw toFailure(error);
        });
      }
    }
  }

  return async function* fetchPage(call, request) {
    const order = planFetch(call, request);
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

/** Whether another worker may do better: this worker was lost, full, or could not launch a browser. */
function isElsewhere(error: unknown): boolean {
  const { slug, extensions } = statusToFailure(error);
  return slug === "capacity-unavailable" || extensions.launch_failed === true || brokeOnTheWay(error);
}

function toFailure(error: unknown): Failure {
  if (!isServiceError(error)) return asFailure(error);
  if (error.code === status.UNIMPLEMENTED)
    return noCapacity("no worker can fetch until the workers have been upgraded: try again later");
  if (!brokeOnTheWay(error)) return statusToFailure(error);
  const detail = "the connection to the browser's machine broke: try again";
  return fail("driver-error", { worker_lost: true }, { detail, cause: error });
}

const tooLate = (): Failure =>
  fail("session-timeout", {}, { detail: "the page was not read in time: try again, or allow more time" });

/** Collects a streamed fetch into one response. */
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
