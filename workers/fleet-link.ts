import { randomUUID } from "node:crypto";
import { create, type DescMessage, type DescMethod, type MessageShape } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { type ChannelOptions, Client, Metadata } from "@grpc/grpc-js";
import {
  GatewayService,
  HeartbeatRequestSchema,
  type Isolation,
  RegisterRequestSchema,
  ReportRequestSchema,
} from "../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SessionEndedReason } from "../src/gen/pilothouse/v1/session_pb.ts";
import { pause } from "../src/platform/bounded-wait.ts";
import { fleetMetadata } from "../src/platform/fleet-metadata.ts";
import { dialledAs, type FleetTlsFiles, fleetClientCredentials } from "../src/platform/fleet-tls.ts";
import { callUnary, type GrpcCallOptions, type TypedMethod } from "../src/platform/grpc-codec.ts";
import { statusToFailure } from "../src/platform/grpc-failure.ts";
import type { EventLog } from "./event-log.ts";
import type { GatewayRound } from "./gateway-round.ts";
import { hashSecret, type Identity, type IdentityFile } from "./identity.ts";
import type { ProfileShelf } from "./profiles/profile-shelf.ts";
import type { SessionTable } from "./session/session-table.ts";
import type { Log } from "./slots/log.ts";

/** Milliseconds. A call fails well before the lease of 8 s is over, so that another gateway can be asked. */
const times = { heartbeat: 2_000, call: 2_000, retry: 300, handOver: 3_000 };

const channelOptions: ChannelOptions = {
  "grpc.enable_retries": 0,
  // The next gateway on the same socket is found within a second.
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  "grpc.service_config_disable_resolution": 1,
};

/** What a worker tells of itself. */
export interface WorkerDescription {
  readonly address: string;
  readonly runtimes: readonly string[];
  readonly slots: number;
  readonly isolation: Isolation;
}

/** What the link is made of. */
export interface FleetLinkOptions {
  readonly gateways: GatewayRound;
  readonly tls?: FleetTlsFiles | undefined;
  readonly token: string;
  readonly identityFile: IdentityFile;
  readonly describe: () => WorkerDescription;
  readonly sessions: SessionTable;
  readonly events: EventLog;
  readonly profiles?: ProfileShelf;
  readonly log: Log;
  /** Hears that no gateway has accepted a heartbeat for a lease: all sessions have been ended. */
  onLeaseLost(): void;
  /** Hears that another process runs in the worker's name: this one has to end. */
  onSuperseded(): void;
}

/** A registration in force. */
interface Lease {
  readonly incarnation: bigint;
}

/** Keeps a worker known to the gateways: registers, renews the lease, reports events, ends what it must not have. */
export class FleetLink {
  readonly #options: FleetLinkOptions;
  /** Random per start of the process: a registration sent twice is one incarnation. */
  readonly #bootId = randomUUID();
  readonly #stopping = new AbortController();
  #identity: Identity | undefined;
  #lease: Lease | undefined;
  /** How long the worker may go without an accepted heartbeat, as the last gateway said. */
  #leaseMs = 8_000;
  #acceptedAt = performance.now();
  /** No gateway answers, and that has been said. */
  #isSilent = false;
  /** Undefined until it is needed, and after one that failed. */
  #gateway: Promise<Client> | undefined;
  /** The one that was asked last. */
  #asked = "";
  #running: Promise<void> = Promise.resolve();

  constructor(options: FleetLinkOptions) {
    this.#options = options;
  }

  /** Begins to register; goes on trying until it is stopped. */
  async start(): Promise<void> {
    this.#identity = await this.#options.identityFile.read();
    this.#running = Promise.all([this.#keepLease(), this.#watchLease(), this.#reportEvents()]).then(() => undefined);
  }

  /** What gateways show; undefined before the first registration. */
  get secretHash(): string | undefined {
    return this.#identity && hashSecret(this.#identity.workerSecret);
  }

  /** A gateway knows the worker, and its lease is good. */
  get isRegistered(): boolean {
    return this.#lease !== undefined;
  }

  /** Tells a gateway at once what has changed, such as that the worker drains. */
  async sayNow(): Promise<void> {
    if (this.#lease) await this.#heartbeat(this.#lease).catch(() => undefined);
  }

  /** Has gateways take what waits on the shelf; what they have not taken in time stays there. */
  async handOver(profiles: ProfileShelf): Promise<void> {
    const deadline = performance.now() + times.handOver;
    while (this.#lease && performance.now() < deadline && (await profiles.pending()).length > 0) {
      await this.sayNow();
      await pause(times.retry / 3);
    }
  }

  /** Reports what is left, then ends. */
  async stop(): Promise<void> {
    await this.#flush().catch(() => undefined);
    this.#stopping.abort();
    await this.#running;
    await this.#gateway?.then((client) => client.close()).catch(() => undefined);
  }

  async #keepLease(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        this.#lease ??= await this.#register();
        await this.#heartbeat(this.#lease);
        await pause(times.heartbeat, signal);
      } catch (thrown) {
        this.#onFailure(thrown);
        await pause(times.retry, signal);
      }
    }
  }

  async #register(): Promise<Lease> {
    const { token, describe, log, identityFile } = this.#options;
    const { runtimes, ...rest } = describe();
    const request = create(RegisterRequestSchema, {
      ...rest,
      runtimes: [...runtimes],
      workerToken: token,
      bootId: this.#bootId,
      ...this.#identity,
    });
    const answer = await this.#ask(GatewayService.method.register, request, { timeoutMs: times.call });
    const { workerId, incarnation, leaseMs } = answer;
    const workerSecret = answer.workerSecret || this.#identity?.workerSecret;
    if (workerSecret === undefined) throw new Error("a gateway took the worker for one that has a secret already");
    this.#identity = { workerId, workerSecret };
    await identityFile.write(this.#identity);
    log.info({ workerId, incarnation: Number(incarnation) }, "registered with a gateway");
    this.#leaseMs = leaseMs;
    this.#acceptedAt = performance.now();
    return { incarnation };
  }

  async #heartbeat(lease: Lease): Promise<void> {
    const { sessions, profiles, log } = this.#options;
    const sentAt = performance.now();
    const request = create(HeartbeatRequestSchema, {
      incarnation: lease.incarnation,
      freeSlots: sessions.free,
      draining: sessions.isDraining,
      closedBy: sessions.closedBy ?? "",
      sessions: sessions.held.map(({ sessionId, placementEpoch }) => ({ sessionId, placementEpoch })),
      profiles: (await profiles?.pending()) ?? [],
    });
    const answer = await this.#ask(GatewayService.method.heartbeat, request, this.#callOptions());
    const { unwanted, settledProfiles } = answer;
    this.#acceptedAt = sentAt;
    this.#isSilent = false;
    for (const placement of unwanted) {
      log.info({ session: placement.sessionId }, "a gateway does not want this session any more");
      sessions.destroy(placement);
    }
    for (const placement of settledProfiles) await profiles?.drop(placement);
  }

  /** Ends everything when no heartbeat has been accepted for a lease: gateways count the sessions as lost by then. */
  async #watchLease(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const left = this.#acceptedAt + this.#leaseMs - performance.now();
      if (left > 0) await pause(Math.min(left, times.retry), signal);
      else await this.#loseLease();
    }
  }

  async #loseLease(): Promise<void> {
    const { sessions, log, onLeaseLost } = this.#options;
    this.#lease = undefined;
    this.#acceptedAt = performance.now();
    log.error({ sessions: sessions.held.length }, "no gateway has accepted a heartbeat for a lease: all sessions end");
    await sessions.endAll(SessionEndedReason.WORKER_LOST);
    onLeaseLost();
  }

  async #reportEvents(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#flush().catch((thrown: unknown) => this.#onFailure(thrown));
      await pause(times.retry / 3, signal);
    }
  }

  async #flush(): Promise<void> {
    const { events } = this.#options;
    for (let { batch } = events; batch.length > 0 && this.#lease; { batch } = events) {
      const request = create(ReportRequestSchema, {
        incarnation: this.#lease.incarnation,
        events: [...batch],
        sentAt: timestampNow(),
      });
      await this.#ask(GatewayService.method.report, request, this.#callOptions());
      events.acknowledge(batch.length);
    }
  }

  #onFailure(thrown: unknown): void {
    const { log, onSuperseded } = this.#options;
    if (this.#stopping.signal.aborted) return;
    const failure = statusToFailure(thrown);
    if (failure.slug === "conflict") {
      onSuperseded();
      return;
    }
    if (failure.slug === "unauthorized") {
      // Registered with a database that is no more: the worker starts anew, as another one.
      if (this.#lease === undefined) this.#identity = undefined;
      this.#lease = undefined;
      log.warn({ err: failure.message }, "a gateway does not know this worker");
    } else if (!this.#isSilent) {
      this.#isSilent = true;
      log.warn({ err: failure.message, gateway: this.#asked }, "a gateway did not answer; the next one is asked");
    }
  }

  /** Asks the gateway that answered last; whichever fails is left for the next one. */
  async #ask<I extends DescMessage, O extends DescMessage>(
    method: TypedMethod<"unary", I, O> & DescMethod,
    request: MessageShape<I>,
    options: GrpcCallOptions,
  ): Promise<MessageShape<O>> {
    this.#gateway ??= this.#connect();
    const asked = this.#gateway;
    try {
      return await callUnary(await asked, method, request, options);
    } catch (thrown) {
      // Another call may have left it already: the one after it must not be skipped.
      if (this.#gateway === asked) this.#gateway = undefined;
      asked.then((client) => client.close()).catch(() => undefined);
      throw thrown;
    }
  }

  async #connect(): Promise<Client> {
    const { gateways, tls } = this.#options;
    const { target, name } = await gateways.next();
    const options = { ...channelOptions, ...(name !== undefined && dialledAs(name)) };
    this.#asked = target;
    return new Client(target, fleetClientCredentials(tls), options);
  }

  #callOptions(): { metadata: Metadata; timeoutMs: number } {
    const metadata = new Metadata();
    metadata.set(fleetMetadata.workerId, this.#identity?.workerId ?? "");
    metadata.set(fleetMetadata.workerSecret, this.#identity?.workerSecret ?? "");
    return { metadata, timeoutMs: times.call };
  }
}
