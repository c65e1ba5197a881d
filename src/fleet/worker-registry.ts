import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Metadata } from "@grpc/grpc-js";
import {
  type ExportSpansRequest,
  type ExportSpansResponse,
  ExportSpansResponseSchema,
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
  Isolation,
  type RegisterRequest,
  type RegisterResponse,
  RegisterResponseSchema,
  type ReportRequest,
  type ReportResponse,
  ReportResponseSchema,
  type StoreLogsRequest,
  type StoreLogsResponse,
  StoreLogsResponseSchema,
  type WorkerEvent,
} from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { unlessLate } from "../platform/deadline.ts";
import { Failure, fail } from "../platform/errors.ts";
import { fleetMetadata } from "../platform/grpc/fleet-metadata.ts";
import { IdleMap } from "../platform/idle-map.ts";
import { randomText } from "../platform/ids.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import type { Tx } from "../platform/postgres/database.ts";
import { isContention, isDatabaseAway } from "../platform/postgres/database-away.ts";
import { hashSecret, matchesHash } from "../platform/secrets/secrets.ts";
import { defaultPool, isPoolName } from "../platform/worker-pool.ts";
import type { SessionKeeper, WorkerIncarnation } from "./session-keeper.ts";
import {
  findSecretHash,
  holdIncarnation,
  leaseMs,
  lockRegistered,
  releaseAllSlots,
  releaseSlots,
  renewLease,
  saveWorker,
} from "./store.ts";

/** 5 bits per character: 200 random bits. */
const secretLength = 40;

/** Milliseconds that a heartbeat waits for PostgreSQL. The worker's own timeout is 2 s. */
const patience = 1_000;

/** Milliseconds for which an inactive worker stays cached. */
const callerKept = 600_000;

/** Handles registrations, heartbeats and reports of workers. */
export interface WorkerRegistry {
  register(metadata: Metadata, request: RegisterRequest): Promise<RegisterResponse>;
  heartbeat(metadata: Metadata, request: HeartbeatRequest): Promise<HeartbeatResponse>;
  report(metadata: Metadata, request: ReportRequest): Promise<ReportResponse>;
  storeLogs(metadata: Metadata, request: StoreLogsRequest): Promise<StoreLogsResponse>;
  exportSpans(metadata: Metadata, request: ExportSpansRequest): Promise<ExportSpansResponse>;
  /** Number of heartbeats received by this process. */
  readonly heartbeats: number;
}

export interface WorkerRegistryParts extends Pick<PlatformParts, "db" | "bus" | "ids" | "clock" | "log"> {
  readonly keeper: SessionKeeper;
  readonly workerToken: string;
  readonly forwardSpans?: ((spans: Uint8Array) => void) | undefined;
}

/** A worker that calls this process. */
interface Caller {
  readonly id: string;
  readonly secretHash: Buffer;
  /** Host of the worker, for the log. */
  readonly host: string;
  /** Incarnation of the last stored heartbeat. */
  incarnation?: bigint;
  latest?: HeartbeatRequest;
  /** Heartbeat being stored. */
  noting?: Promise<HeartbeatResponse> | undefined;
}

interface Admission {
  readonly id: string;
  readonly secretHash: Buffer;
  /** Empty if the worker keeps its secret. */
  readonly newSecret: string;
  readonly incarnation: bigint;
  readonly restarted: boolean;
}

/** An event with its age in milliseconds, which grows until it is applied. */
interface DatedEvent {
  readonly event: WorkerEvent;
  readonly agoMs: () => number;
}

/** Returns whether the same report may succeed later. */
function isPassing(error: unknown): boolean {
  return isDatabaseAway(error) || isContention(error) || (error instanceof Failure && error.slug === "conflict");
}

const isolationNames: Readonly<Record<number, string>> = {
  [Isolation.NAMESPACE]: "namespace",
  [Isolation.FLAGS]: "flags",
};

function assertSound({ address, runtimes, slots, bootId, pool }: RegisterRequest): void {
  if (pool !== "" && !isPoolName(pool)) {
    throw fail("bad-request", {}, { detail: "expected a pool of at most 63 lower-case letters, digits and hyphens" });
  }
  if (address === "" || runtimes.length === 0 || slots === 0 || bootId === "") {
    throw fail("bad-request", {}, { detail: "expected address, runtimes, slots and boot_id in a registration" });
  }
}

/** Returns the age of an event in milliseconds when it was sent. */
function agoOf({ at }: WorkerEvent, sentAt: Timestamp | undefined): number {
  return at && sentAt ? Math.max(0, timestampMs(sentAt) - timestampMs(at)) : 0;
}

function readText(metadata: Metadata, name: string): string {
  const [value] = metadata.get(name);
  return typeof value === "string" ? value : "";
}

/** Longest host name (RFC 1035). */
const longestHost = 253;

const readHost = (metadata: Metadata): string => readText(metadata, fleetMetadata.workerHost).slice(0, longestHost);

export function createWorkerRegistry(parts: WorkerRegistryParts): WorkerRegistry {
  const { db, bus, clock, ids, log, keeper } = parts;
  const tokenHash = hashSecret(parts.workerToken);
  const callers = new IdleMap<string, Caller>(callerKept, parts);
  let heartbeats = 0;

  /** Authenticates a worker. The secret is cached after the first call, so that heartbeats work without PostgreSQL. */
  async function identify(metadata: Metadata): Promise<Caller> {
    const id = readText(metadata, fleetMetadata.workerId);
    const secret = readText(metadata, fleetMetadata.workerSecret);
    const known = callers.get(id);
    if (known && matchesHash(secret, known.secretHash)) return known;
    const secretHash = await findSecretHash(db, id);
    if (!secretHash || !matchesHash(secret, secretHash)) throw fail("unauthorized", {}, { detail: "unknown worker" });
    const caller: Caller = { id, secretHash, host: readHost(metadata) };
    callers.set(id, caller);
    return caller;
  }

  /** Identifies a registering worker by its id, else by its boot id, else as a new worker. */
  async function admit(tx: Tx, request: RegisterRequest): Promise<Admission> {
    const row = await lockRegistered(tx, request.workerId, request.bootId);
    const isItself = row !== undefined && row.id === request.workerId;
    if (isItself && !matchesHash(request.workerSecret, row.secret_hash)) {
      throw fail("unauthorized", {}, { detail: "worker_secret does not match worker_id" });
    }
    const restarted = row !== undefined && row.boot_id !== request.bootId;
    const incarnation = row ? BigInt(row.incarnation) + (restarted ? 1n : 0n) : 1n;
    if (isItself) return { id: row.id, secretHash: row.secret_hash, newSecret: "", incarnation, restarted };
    // First registration, or a retry because the response with the secret was lost.
    const newSecret = randomText(secretLength);
    return { id: row?.id ?? ids.next("wrk"), secretHash: hashSecret(newSecret), newSecret, incarnation, restarted };
  }

  /** Renews the lease of a worker, and returns whether the worker must drain. */
  async function renew(caller: Caller, request: HeartbeatRequest): Promise<boolean> {
    const { id } = caller;
    const { incarnation, draining, closedBy, launchesFail, leaving, sessions } = request;
    const isFirst = caller.incarnation !== incarnation;
    const renewed = await renewLease(db, { id, incarnation, draining, closedBy, launchesFail, leaving });
    if (!renewed) throw superseded();
    const held = sessions.map(({ sessionId }) => sessionId);
    const freed = renewed.holdsEnded ? await releaseSlots(db, { id, incarnation }, held) : 0;
    // Wakes session creates that wait for a slot.
    if (freed > 0 || isFirst) bus.publish("capacity", "");
    caller.incarnation = incarnation;
    if (leaving) log.info({ worker_id: id, incarnation: Number(incarnation), host: caller.host }, "worker left");
    return renewed.drain;
  }

  const superseded = () =>
    fail("conflict", {}, { detail: "the worker has been restarted: expected a call of its latest incarnation" });

  /** Stores a heartbeat and returns the instructions for the worker. */
  function note(caller: Caller, request: HeartbeatRequest): Promise<HeartbeatResponse> {
    caller.noting = take(caller, request).finally(() => {
      caller.noting = undefined;
    });
    return caller.noting;
  }

  /** Stores one heartbeat at a time. Of waiting heartbeats, stores only the latest, so that they do not pile up. */
  async function noteInTurn(caller: Caller, request: HeartbeatRequest): Promise<HeartbeatResponse> {
    caller.latest = request;
    await caller.noting?.catch(() => undefined);
    return caller.latest === request ? note(caller, request) : create(HeartbeatResponseSchema);
  }

  async function take(caller: Caller, request: HeartbeatRequest): Promise<HeartbeatResponse> {
    try {
      const drain = await renew(caller, request);
      const unwanted = await keeper.unwanted(caller.id, request.sessions);
      const settledProfiles = await keeper.settledProfiles(caller.id, request.profiles);
      return create(HeartbeatResponseSchema, { unwanted, settledProfiles, drain });
    } catch (error) {
      if (isDatabaseAway(error)) return create(HeartbeatResponseSchema);
      throw error;
    }
  }

  /**
   * An outage of PostgreSQL must not end sessions. If PostgreSQL is down or hangs, the worker gets an empty response,
   * and leases are renewed afterwards.
   */
  function unlessItHangs(noted: Promise<HeartbeatResponse>): Promise<HeartbeatResponse> {
    return unlessLate(noted, patience, () => create(HeartbeatResponseSchema));
  }

  function applyAll(from: WorkerIncarnation, events: readonly DatedEvent[]): Promise<void> {
    return db.transaction(async (tx) => {
      if (!(await holdIncarnation(tx, from.workerId, from.incarnation))) throw superseded();
      for (const { event, agoMs } of events) await keeper.apply(tx, from, event, agoMs);
    });
  }

  /**
   * Applies events one by one after the batch failed. An event that fails by itself is skipped, because retries would
   * block all other events of the worker.
   */
  async function applyEach(from: WorkerIncarnation, events: readonly DatedEvent[], failure: unknown): Promise<void> {
    if (isPassing(failure)) throw failure;
    for (const dated of events) {
      await applyAll(from, [dated]).catch((error: unknown) => {
        if (isPassing(error)) throw error;
        const { sessionId, event } = dated.event;
        log.error(
          { err: error, worker_id: from.workerId, session_id: sessionId, event: event.case },
          "failed to apply worker event; skipped",
        );
      });
    }
  }

  return {
    get heartbeats() {
      return heartbeats;
    },
    async register(metadata, request) {
      if (!matchesHash(request.workerToken, tokenHash))
        throw fail("unauthorized", {}, { detail: "worker_token does not match WORKER_TOKEN of the control process" });
      assertSound(request);
      const admission = await db.transaction(async (tx) => {
        const admitted = await admit(tx, request);
        const { address, runtimes, slots, bootId, isolation, unsandboxed, release } = request;
        const isolationName = isolationNames[isolation] ?? "unknown";
        const described = { address, runtimes, slots, bootId, isolation: isolationName, unsandboxed, release };
        const pool = request.pool || defaultPool;
        await saveWorker(tx, { ...admitted, ...described, pool });
        if (admitted.restarted) {
          const end = { reason: "worker_lost", detail: "the worker was restarted" } as const;
          await keeper.endAllOf(tx, admitted.id, end);
          await releaseAllSlots(tx, admitted.id);
        }
        return admitted;
      });
      const { id, incarnation } = admission;
      const { address, slots, release } = request;
      const described = { host: readHost(metadata), address, slots, release };
      log.info({ worker_id: id, incarnation: Number(incarnation), ...described }, "worker registered");
      const identity = { workerId: id, workerSecret: admission.newSecret, incarnation };
      const duties = { storesLogs: keeper.storeLogs !== undefined, exportsSpans: parts.forwardSpans !== undefined };
      return create(RegisterResponseSchema, { ...identity, leaseMs, ...duties });
    },
    async heartbeat(metadata, request) {
      const caller = await identify(metadata);
      heartbeats += 1;
      return unlessItHangs(noteInTurn(caller, request));
    },
    async report(metadata, { incarnation, events, sentAt }) {
      const receivedAt = clock.monotonic();
      const from = { workerId: (await identify(metadata)).id, incarnation };
      // Age includes the wait for PostgreSQL: during a hang, a report is applied up to 12 s after receipt.
      const dated = events.map((event) => ({
        event,
        agoMs: () => Math.round(agoOf(event, sentAt) + clock.monotonic() - receivedAt),
      }));
      await applyAll(from, dated).catch((error) => applyEach(from, dated, error));
      return create(ReportResponseSchema);
    },
    async storeLogs(metadata, { logs }) {
      const { id } = await identify(metadata);
      return create(StoreLogsResponseSchema, { stored: (await keeper.storeLogs?.(id, logs)) ?? 0 });
    },
    async exportSpans(metadata, { spans }) {
      await identify(metadata);
      parts.forwardSpans?.(spans);
      return create(ExportSpansResponseSchema);
    },
  };
}
