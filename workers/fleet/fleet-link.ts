import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import {
  ControlService,
  HeartbeatRequestSchema,
  type Isolation,
  RegisterRequestSchema,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { fleetMetadata } from "../../src/platform/grpc/fleet-metadata.ts";
import { statusToFailure } from "../../src/platform/grpc/grpc-failure.ts";
import { processIdentity, releaseVersion } from "../../src/platform/release.ts";
import type { Log } from "../base/log.ts";
import type { ProfileStore } from "../profiles/profile-store.ts";
import type { SessionTable } from "../session/session-table.ts";
import type { ControlCaller, ControlMethod } from "./control-caller.ts";
import { hashControlSecret, type Identity, type IdentityFile } from "./identity.ts";

/** Milliseconds. Calls time out well before the lease of 8 s expires, so that another control process can be tried. */
const times = { heartbeat: 2_000, call: 2_000, retry: 300, handOver: 3_000 };

/** Registration data of a worker. */
export interface WorkerDescription {
  readonly address: string;
  readonly runtimes: readonly string[];
  readonly slots: number;
  readonly pool: string;
  readonly isolation: Isolation;
  readonly unsandboxed: boolean;
}

/**
 * Reason to stop a worker. `lease lost`: no heartbeat was accepted for a lease, and the sessions were ended. A
 * standalone worker then registers again. `superseded`: another process runs under the same identity.
 * `drain requested`: by the operator. Running sessions continue.
 */
export type WorkerStopReason = "lease lost" | "superseded" | "drain requested";

export interface FleetLinkOptions {
  readonly control: ControlCaller;
  readonly token: string;
  readonly identityFile: IdentityFile;
  readonly describe: () => WorkerDescription;
  readonly sessions: SessionTable;
  readonly profiles?: ProfileStore;
  readonly log: Log;
  onStopRequired(stopReason: WorkerStopReason): void;
  /** Called after each registration with a control process that exports spans. */
  onExportsSpans?(): void;
}

/** Current registration. */
interface Lease {
  readonly incarnation: bigint;
  readonly storesLogs: boolean;
  readonly exportsSpans: boolean;
}

/**
 * Registers a worker with control processes, renews its lease by heartbeats and ends sessions that the control process
 * no longer lists.
 */
export class FleetLink {
  readonly #options: FleetLinkOptions;
  /** Random per process start, so that a repeated registration keeps its incarnation. */
  readonly #bootId = randomUUID();
  readonly #stopping = new AbortController();
  #identity: Identity | undefined;
  #lease: Lease | undefined;
  /** Lease duration from the last registration: the longest time without an accepted heartbeat. */
  #leaseMs = 8_000;
  #acceptedAt = performance.now();
  /** Whether a failed call was logged. Later failures are not logged until a heartbeat is accepted. */
  #isFailureLogged = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: FleetLinkOptions) {
    this.#options = options;
  }

  /** Starts registration and retries until stopped. */
  async start(): Promise<void> {
    this.#identity = await this.#options.identityFile.read();
    this.#running = Promise.all([this.#keepLease(), this.#watchLease()]).then(() => undefined);
  }

  /** Hash that gateways send to prove that they know this worker. Undefined while the worker has no identity. */
  get secretHash(): string | undefined {
    return this.#identity && hashControlSecret(this.#identity.workerSecret);
  }

  /** Whether the control process stores logs of ended sessions. */
  get storesLogs(): boolean {
    return this.#lease?.storesLogs ?? false;
  }

  /** Whether the control process sends spans to a collector. */
  get exportsSpans(): boolean {
    return this.#lease?.exportsSpans ?? false;
  }

  get isRegistered(): boolean {
    return this.#lease !== undefined;
  }

  /** Sends a heartbeat immediately, for example when the worker starts to drain. */
  async sendHeartbeat(): Promise<void> {
    await this.#heartbeat();
  }

  /**
   * Sends heartbeats for up to 3 s until gateways have fetched all pending profiles. Remaining profiles stay on disk.
   */
  async handOver(profiles: ProfileStore): Promise<void> {
    const deadline = performance.now() + times.handOver;
    while (this.#lease && performance.now() < deadline && (await profiles.pending()).length > 0) {
      await this.sendHeartbeat();
      await sleep(times.retry / 3);
    }
  }

  /** Stops heartbeats and ends the lease, so that the worker is not counted as lost. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.call(ControlService.method.heartbeat, (incarnation) =>
      create(HeartbeatRequestSchema, { incarnation, draining: true, leaving: true }),
    );
    this.#options.control.close();
  }

  /** Calls a control process as the registered worker. Resolves with undefined if unregistered or after a failure. */
  async call<I extends DescMessage, O extends DescMessage>(
    method: ControlMethod<I, O>,
    makeRequest: (incarnation: bigint) => MessageShape<I>,
  ): Promise<MessageShape<O> | undefined> {
    if (!this.#lease || !this.#identity) return undefined;
    const metadata = describeHost();
    metadata.set(fleetMetadata.workerId, this.#identity.workerId);
    metadata.set(fleetMetadata.workerSecret, this.#identity.workerSecret);
    const request = makeRequest(this.#lease.incarnation);
    try {
      return await this.#options.control.call(method, request, { metadata, timeoutMs: times.call });
    } catch (thrown) {
      this.#onFailure(thrown);
      return undefined;
    }
  }

  async #keepLease(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (!this.#lease) await this.#register().catch((thrown: unknown) => this.#onFailure(thrown));
      const isAccepted = await this.#heartbeat();
      await sleep(isAccepted ? times.heartbeat : times.retry, signal);
    }
  }

  async #register(): Promise<void> {
    const { token, describe, log, identityFile, control } = this.#options;
    const { runtimes, ...rest } = describe();
    const request = create(RegisterRequestSchema, {
      ...rest,
      runtimes: [...runtimes],
      workerToken: token,
      bootId: this.#bootId,
      release: releaseVersion,
      ...this.#identity,
    });
    const answer = await control.call(ControlService.method.register, request, {
      metadata: describeHost(),
      timeoutMs: times.call,
    });
    const { workerId, incarnation, leaseMs, storesLogs, exportsSpans } = answer;
    const workerSecret = answer.workerSecret || this.#identity?.workerSecret;
    if (workerSecret === undefined) throw new Error("expected a worker secret from the control process, got none");
    this.#identity = { workerId, workerSecret };
    await identityFile.write(this.#identity);
    log.info(
      { ...processIdentity("worker"), worker_id: workerId, incarnation: Number(incarnation) },
      "registered with a control process",
    );
    this.#leaseMs = leaseMs;
    this.#acceptedAt = performance.now();
    this.#lease = { incarnation, storesLogs, exportsSpans };
    if (exportsSpans) this.#options.onExportsSpans?.();
  }

  /** Sends a heartbeat. Resolves to true if a control process accepted the heartbeat. */
  async #heartbeat(): Promise<boolean> {
    const { sessions, profiles, log, onStopRequired } = this.#options;
    const waiting = (await profiles?.pending()) ?? [];
    const held = sessions.held.map(({ sessionId, placementEpoch }) => ({ sessionId, placementEpoch }));
    const sentAt = performance.now();
    const answer = await this.call(ControlService.method.heartbeat, (incarnation) =>
      create(HeartbeatRequestSchema, {
        incarnation,
        draining: sessions.isDraining,
        closedBy: sessions.closedBy ?? "",
        launchesFail: sessions.launchFails,
        sessions: held,
        profiles: waiting,
      }),
    );
    if (!answer) return false;
    this.#acceptedAt = sentAt;
    this.#isFailureLogged = false;
    log.debug({ session_ids: held.map(({ sessionId }) => sessionId) }, "the control process accepted a heartbeat");
    for (const placement of answer.unwanted) {
      log.info({ session_id: placement.sessionId }, "ending a session that the control process no longer lists");
      sessions.destroy(placement);
    }
    for (const placement of answer.settledProfiles) {
      await profiles?.drop(placement).catch((error: unknown) => {
        log.warn({ err: error, session_id: placement.sessionId }, "failed to delete a profile that a gateway fetched");
      });
    }
    if (answer.drain && !sessions.isDraining) onStopRequired("drain requested");
    return true;
  }

  /**
   * Ends all sessions if no heartbeat was accepted for the duration of a lease. Gateways then already treat the
   * sessions as lost.
   */
  async #watchLease(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const left = this.#acceptedAt + this.#leaseMs - performance.now();
      if (left > 0) await sleep(Math.min(left, times.retry), signal);
      else await this.#loseLease();
    }
  }

  async #loseLease(): Promise<void> {
    const { sessions, log, onStopRequired } = this.#options;
    const hadLease = this.#lease !== undefined;
    this.#lease = undefined;
    this.#acceptedAt = performance.now();
    if (hadLease)
      log.error({ sessions: sessions.held.length }, "lease expired without an accepted heartbeat; ending all sessions");
    await sessions.endAll(SessionEndedReason.WORKER_LOST);
    onStopRequired("lease lost");
  }

  #onFailure(thrown: unknown): void {
    const { log, onStopRequired, control } = this.#options;
    if (this.#stopping.signal.aborted) return;
    const failure = statusToFailure(thrown);
    if (failure.slug === "conflict") {
      onStopRequired("superseded");
      return;
    }
    if (failure.slug === "unauthorized") {
      // A worker that is unknown even while it registers needs a new identity, because the database was replaced.
      if (this.#lease === undefined) this.#identity = undefined;
      this.#lease = undefined;
      log.warn({ err: failure.message }, "the control process does not know this worker");
    } else if (!this.#isFailureLogged) {
      this.#isFailureLogged = true;
      log.warn(
        // If the process is unreachable, the thrown error names the cause, such as a refused connection.
        { err: thrown instanceof Error ? thrown.message : failure.message, control: control.lastTarget },
        "failed to call the control process; trying the next one",
      );
    }
  }
}

function describeHost(): Metadata {
  const metadata = new Metadata();
  metadata.set(fleetMetadata.workerHost, hostname());
  return metadata;
}
