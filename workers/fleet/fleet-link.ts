import { randomUUID } from "node:crypto";
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
import type { Log } from "../base/log.ts";
import type { ProfileShelf } from "../profiles/profile-shelf.ts";
import type { SessionTable } from "../session/session-table.ts";
import type { ControlCaller, ControlMethod } from "./control-caller.ts";
import { hashSecret, type Identity, type IdentityFile } from "./identity.ts";

/** Milliseconds. A call fails well before the lease of 8 s is over, so that another control process can be asked. */
const times = { heartbeat: 2_000, call: 2_000, retry: 300, handOver: 3_000 };

/** What a worker tells of itself. */
export interface WorkerDescription {
  readonly address: string;
  readonly runtimes: readonly string[];
  readonly slots: number;
  readonly isolation: Isolation;
  readonly unsandboxed: boolean;
}

/**
 * Why a worker is of no use any more: no control process has accepted a heartbeat for a lease, and its sessions were ended; or
 * another process runs in its name.
 */
export type WorkerFate = "lease lost" | "superseded";

export interface FleetLinkOptions {
  readonly control: ControlCaller;
  readonly token: string;
  readonly identityFile: IdentityFile;
  readonly describe: () => WorkerDescription;
  readonly sessions: SessionTable;
  readonly profiles?: ProfileShelf;
  readonly log: Log;
  onFate(fate: WorkerFate): void;
}

/** A registration in force. */
interface Lease {
  readonly incarnation: bigint;
}

/** Keeps a worker known to the control processes: registers, renews the lease, ends what the worker must not have. */
export class FleetLink {
  readonly #options: FleetLinkOptions;
  /** Random per start of the process: a registration sent twice is one incarnation. */
  readonly #bootId = randomUUID();
  readonly #stopping = new AbortController();
  #identity: Identity | undefined;
  #lease: Lease | undefined;
  /** How long the worker may go without an accepted heartbeat, as the last control process said. */
  #leaseMs = 8_000;
  #acceptedAt = performance.now();
  /** No control process answers, and that has been said. */
  #isSilent = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: FleetLinkOptions) {
    this.#options = options;
  }

  /** Begins to register; goes on trying until it is stopped. */
  async start(): Promise<void> {
    this.#identity = await this.#options.identityFile.read();
    this.#running = Promise.all([this.#keepLease(), this.#watchLease()]).then(() => undefined);
  }

  /** What gateways show; undefined before the first registration. */
  get secretHash(): string | undefined {
    return this.#identity && hashSecret(this.#identity.workerSecret);
  }

  /** A control process knows the worker, and its lease is good. */
  get isRegistered(): boolean {
    return this.#lease !== undefined;
  }

  /** Tells a control process at once what has changed, such as that the worker drains. */
  async sayNow(): Promise<void> {
    await this.#heartbeat();
  }

  /** Has gateways take what waits on the shelf; what they have not taken in time stays there. */
  async handOver(profiles: ProfileShelf): Promise<void> {
    const deadline = performance.now() + times.handOver;
    while (this.#lease && performance.now() < deadline && (await profiles.pending()).length > 0) {
      await this.sayNow();
      await sleep(times.retry / 3);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#options.control.close();
  }

  /** Asks a control process in the name of the registered worker; undefined when there is no registration, or no answer. */
  async ask<I extends DescMessage, O extends DescMessage>(
    method: ControlMethod<I, O>,
    makeRequest: (incarnation: bigint) => MessageShape<I>,
  ): Promise<MessageShape<O> | undefined> {
    if (!this.#lease || !this.#identity) return undefined;
    const metadata = new Metadata();
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
      ...this.#identity,
    });
    const answer = await control.call(ControlService.method.register, request, { timeoutMs: times.call });
    const { workerId, incarnation, leaseMs } = answer;
    const workerSecret = answer.workerSecret || this.#identity?.workerSecret;
    if (workerSecret === undefined)
      throw new Error("a control process took the worker for one that has a secret already");
    this.#identity = { workerId, workerSecret };
    await identityFile.write(this.#identity);
    log.info({ workerId, incarnation: Number(incarnation) }, "registered with a control process");
    this.#leaseMs = leaseMs;
    this.#acceptedAt = performance.now();
    this.#lease = { incarnation };
  }

  /** Says whether a control process has accepted it. */
  async #heartbeat(): Promise<boolean> {
    const { sessions, profiles, log } = this.#options;
    const waiting = (await profiles?.pending()) ?? [];
    const held = sessions.held.map(({ sessionId, placementEpoch }) => ({ sessionId, placementEpoch }));
    const sentAt = performance.now();
    const answer = await this.ask(ControlService.method.heartbeat, (incarnation) =>
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
    this.#isSilent = false;
    log.debug({ sessions: held.map(({ sessionId }) => sessionId) }, "a control process has accepted a heartbeat");
    for (const placement of answer.unwanted) {
      log.info({ session: placement.sessionId }, "a control process does not want this session any more");
      sessions.destroy(placement);
    }
    for (const placement of answer.settledProfiles) await profiles?.drop(placement);
    return true;
  }

  /** Ends everything when no heartbeat has been accepted for a lease: gateways count the sessions as lost by then. */
  async #watchLease(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const left = this.#acceptedAt + this.#leaseMs - performance.now();
      if (left > 0) await sleep(Math.min(left, times.retry), signal);
      else await this.#loseLease();
    }
  }

  async #loseLease(): Promise<void> {
    const { sessions, log, onFate } = this.#options;
    this.#lease = undefined;
    this.#acceptedAt = performance.now();
    log.error(
      { sessions: sessions.held.length },
      "no control process has accepted a heartbeat for a lease: all sessions end",
    );
    await sessions.endAll(SessionEndedReason.WORKER_LOST);
    onFate("lease lost");
  }

  #onFailure(thrown: unknown): void {
    const { log, onFate, control } = this.#options;
    if (this.#stopping.signal.aborted) return;
    const failure = statusToFailure(thrown);
    if (failure.slug === "conflict") {
      onFate("superseded");
      return;
    }
    if (failure.slug === "unauthorized") {
      // Registered with a database that is no more: the worker starts anew, as another one.
      if (this.#lease === undefined) this.#identity = undefined;
      this.#lease = undefined;
      log.warn({ err: failure.message }, "a control process does not know this worker");
    } else if (!this.#isSilent) {
      this.#isSilent = true;
      log.warn(
        { err: failure.message, control: control.called },
        "a control process did not answer; the next one is asked",
      );
    }
  }
}
