import { create } from "@bufbuild/protobuf";
import {
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
} from "../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { unlessLate } from "../platform/deadline.ts";
import { fail } from "../platform/errors.ts";
import type { PlatformParts } from "../platform/platform-parts.ts";
import { isDatabaseUnavailable } from "../platform/postgres/database-unavailable.ts";
import type { SessionKeeper } from "./session-keeper.ts";
import { releaseSlots, renewLease } from "./store.ts";

/** Maximum milliseconds that a heartbeat waits for PostgreSQL. The worker's own timeout is 2 s. */
const timeout = 1_000;

export interface WorkerHeartbeatParts extends Pick<PlatformParts, "db" | "bus" | "log"> {
  readonly keeper: SessionKeeper;
}

/** A worker that sends heartbeats. */
export interface HeartbeatCaller {
  readonly id: string;
  /** Host of the worker, for the log. */
  readonly host: string;
  /** Incarnation of the last stored heartbeat. */
  incarnation?: bigint;
  latest?: HeartbeatRequest;
  /** Heartbeat being stored. */
  storing?: Promise<HeartbeatResponse> | undefined;
}

export const supersededIncarnation = () =>
  fail("conflict", {}, { detail: "the worker has been restarted: expected a call of its latest incarnation" });

/** Creates the function that stores the heartbeats of workers. */
export function createWorkerHeartbeats({ db, bus, log, keeper }: WorkerHeartbeatParts) {
  /** Renews the lease of a worker, and returns whether the worker must drain. */
  async function renew(caller: HeartbeatCaller, request: HeartbeatRequest): Promise<boolean> {
    const { id } = caller;
    const { incarnation, draining, closedBy, launchesFail, leaving, sessions } = request;
    const isFirst = caller.incarnation !== incarnation;
    const renewed = await renewLease(db, { id, incarnation, draining, closedBy, launchesFail, leaving });
    if (!renewed) throw supersededIncarnation();
    const held = sessions.map(({ sessionId }) => sessionId);
    const freed = renewed.holdsEnded ? await releaseSlots(db, { id, incarnation }, held) : 0;
    // Wakes session creates that wait for a slot.
    if (freed > 0 || isFirst) bus.publish("capacity", "");
    caller.incarnation = incarnation;
    if (leaving) log.info({ worker_id: id, incarnation: Number(incarnation), host: caller.host }, "worker left");
    return renewed.drain;
  }

  /** Stores a heartbeat and returns the instructions for the worker. */
  function store(caller: HeartbeatCaller, request: HeartbeatRequest): Promise<HeartbeatResponse> {
    caller.storing = handle(caller, request).finally(() => {
      caller.storing = undefined;
    });
    return caller.storing;
  }

  /** Stores one heartbeat at a time. Of waiting heartbeats, stores only the latest, so that they do not accumulate. */
  async function storeLatest(caller: HeartbeatCaller, request: HeartbeatRequest): Promise<HeartbeatResponse> {
    caller.latest = request;
    await caller.storing?.catch(() => undefined);
    return caller.latest === request ? store(caller, request) : create(HeartbeatResponseSchema);
  }

  async function handle(caller: HeartbeatCaller, request: HeartbeatRequest): Promise<HeartbeatResponse> {
    try {
      const drain = await renew(caller, request);
      const unwanted = await keeper.unwanted(caller.id, request.sessions);
      const settledProfiles = await keeper.settledProfiles(caller.id, request.profiles);
      return create(HeartbeatResponseSchema, { unwanted, settledProfiles, drain });
    } catch (error) {
      if (isDatabaseUnavailable(error)) return create(HeartbeatResponseSchema);
      throw error;
    }
  }

  /**
   * An outage of PostgreSQL must not end sessions. If PostgreSQL is down or hangs, the worker gets an empty response,
   * and leases are renewed afterwards.
   */
  return (caller: HeartbeatCaller, request: HeartbeatRequest): Promise<HeartbeatResponse> =>
    unlessLate(storeLatest(caller, request), timeout, () => create(HeartbeatResponseSchema));
}
