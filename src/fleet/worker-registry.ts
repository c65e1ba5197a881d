import { create } from "@bufbuild/protobuf";
import type { Metadata } from "@grpc/grpc-js";
import {
  type ExportSpansRequest,
  type ExportSpansResponse,
  ExportSpansResponseSchema,
  type HeartbeatRequest,
  type HeartbeatResponse,
  type RegisterRequest,
  type RegisterResponse,
  RegisterResponseSchema,
  type ReportRequest,
  type ReportResponse,
  ReportResponseSchema,
  type StoreLogsRequest,
  type StoreLogsResponse,
  StoreLogsResponseSchema,
} from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { fail } from "../platform/errors.ts";
import { fleetMetadata } from "../platform/grpc/fleet-metadata.ts";
import { IdleMap } from "../platform/idle-map.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { hashSecret, matchesHash } from "../platform/secrets/secrets.ts";
import type { SessionKeeper } from "./session-keeper.ts";
import { findSecretHash, leaseMs } from "./store.ts";
import { admitWorker, validateRegistration } from "./worker-admission.ts";
import { createWorkerHeartbeats, type HeartbeatCaller } from "./worker-heartbeats.ts";
import { applyReport } from "./worker-reports.ts";

/** Milliseconds for which an inactive worker stays cached. */
const callerKeptFor = 600_000;

/** Handles registrations, heartbeats, reports, session logs and spans of workers. */
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
interface Caller extends HeartbeatCaller {
  readonly secretHash: Buffer;
}

function readText(metadata: Metadata, name: string): string {
  const [value] = metadata.get(name);
  return typeof value === "string" ? value : "";
}

/** Longest host name (RFC 1035). */
const longestHost = 253;

const readHost = (metadata: Metadata): string => readText(metadata, fleetMetadata.workerHost).slice(0, longestHost);

export function createWorkerRegistry(parts: WorkerRegistryParts): WorkerRegistry {
  const { db, clock, log, keeper } = parts;
  const tokenHash = hashSecret(parts.workerToken);
  const callers = new IdleMap<string, Caller>(callerKeptFor, parts);
  const storeHeartbeat = createWorkerHeartbeats(parts);
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

  return {
    get heartbeats() {
      return heartbeats;
    },
    async register(metadata, request) {
      // Not `unauthorized`, after which a worker discards its identity.
      if (!matchesHash(request.workerToken, tokenHash))
        throw fail("forbidden", {}, { detail: "worker_token does not match WORKER_TOKEN of the control process" });
      validateRegistration(request);
      const { id, incarnation, newSecret } = await db.transaction((tx) => admitWorker(tx, parts, request));
      const { address, slots, release } = request;
      const described = { host: readHost(metadata), address, slots, release };
      log.info({ worker_id: id, incarnation: Number(incarnation), ...described }, "worker registered");
      const identity = { workerId: id, workerSecret: newSecret, incarnation };
      const duties = { storesLogs: keeper.storeLogs !== undefined, exportsSpans: parts.forwardSpans !== undefined };
      return create(RegisterResponseSchema, { ...identity, leaseMs, ...duties });
    },
    async heartbeat(metadata, request) {
      const caller = await identify(metadata);
      heartbeats += 1;
      return storeHeartbeat(caller, request);
    },
    async report(metadata, request) {
      const receivedAt = clock.monotonic();
      const { id: workerId } = await identify(metadata);
      await applyReport(parts, { workerId, incarnation: request.incarnation }, request, receivedAt);
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
