import { createHash, randomUUID } from "node:crypto";
import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import {
  type CommandContext,
  CommandContextSchema,
  type PutFileAnswer,
  PutFileCommandSchema,
  type SecretVariableSchema,
  WorkerService,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Event } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { SessionLogLevel } from "../../src/gen/pilothouse/v1/session_log_pb.ts";
import {
  type CaptureHeader,
  type CaptureRequestSchema,
  CreateSessionRequestSchema,
  type InteractRequestSchema,
  type InteractResponse,
  type NavigateRequestSchema,
  type NavigateResponse,
  type Observation,
  type ObserveRequestSchema,
  type ReadRequestSchema,
  type ReadResponse,
  type SessionState,
  type Thumbnail,
  type WaitRequestSchema,
  type WaitResponse,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { type FleetCommand, fleetCommands, toCommand } from "../../src/platform/grpc/fleet-commands.ts";
import { fleetMetadata } from "../../src/platform/grpc/fleet-metadata.ts";
import {
  callClientStreaming,
  callServerStreaming,
  callUnary,
  type GrpcCallOptions,
} from "../../src/platform/grpc/grpc-codec.ts";
import { statusToFailure } from "../../src/platform/grpc/grpc-failure.ts";
import type { Resolve } from "../../src/platform/outgoing/target-resolution.ts";
import { planSession } from "../../src/sessions/launch/session-plan.ts";
import type { Log } from "../../workers/base/log.ts";
import type { Placement, ReportedEvent } from "../../workers/base/reports.ts";
import { probeRuntimes } from "../../workers/base/runtimes.ts";
import { BoundsWatchdog } from "../../workers/isolation/bounds-watchdog.ts";
import { type SessionBounds, sessionBounds } from "../../workers/isolation/session-bounds.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { BrowserPool } from "../../workers/pool/browser-pool.ts";
import { SessionTable } from "../../workers/session/session-table.ts";
import { WorkerServer } from "../../workers/worker-server.ts";

/** Milliseconds for any call of a test. */
const callMs = 90_000;

const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (object, message) => console.error(message, object),
};

/** Runtimes of this machine, which the files of a process probe once. */
let probed: ReturnType<typeof probeRuntimes> | undefined;

/** Unsolicited event of a session. */
interface SessionHappening extends Placement {
  readonly event: ReportedEvent;
}

interface Parts {
  browsers: BrowserPool;
  slots: SlotPool;
  sessions: SessionTable;
  watchdog: BoundsWatchdog;
  server: WorkerServer;
  port: number;
  hash: string;
  happenings: readonly SessionHappening[];
}

interface WorkerUnderTestOptions {
  /** Extra browser flags. */
  readonly browserFlags?: readonly string[];
  readonly bounds?: SessionBounds;
  /** Resolves names. */
  readonly resolve?: Resolve;
  readonly slots?: number;
  /** Directory of session files. */
  readonly storage?: string;
}

/** Worker without a gateway: its real server with real browsers, launched only for sessions, and a client. */
export class WorkerUnderTest {
  readonly sessions: SessionTable;
  readonly browsers: BrowserPool;
  readonly slots: SlotPool;
  /** Unsolicited events of sessions, in order. */
  readonly happenings: readonly SessionHappening[];
  readonly #watchdog: BoundsWatchdog;
  readonly #server: WorkerServer;
  readonly #client: Client;
  readonly #metadata: Metadata;

  private constructor({ browsers, slots, sessions, watchdog, server, port, hash, happenings }: Parts) {
    this.browsers = browsers;
    this.slots = slots;
    this.#watchdog = watchdog;
    this.sessions = sessions;
    this.#server = server;
    this.happenings = happenings;
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    this.#metadata = new Metadata();
    this.#metadata.set(fleetMetadata.workerSecretHash, hash);
  }

  /** Starts a worker whose pages may reach the given private addresses. */
  static async start(
    allow: readonly string[],
    { browserFlags = [], bounds = sessionBounds, resolve, slots: size = 4, storage }: WorkerUnderTestOptions = {},
  ): Promise<WorkerUnderTest> {
    const executables = findBrowsers({
      env: process.env,
      dataDirectory: "/nonexistent",
      platform: process.platform,
      disk: realDisk,
    });
    const slots = new SlotPool({ size, executables, log: silent, allow, storage, ...(resolve && { resolve }) });
    await slots.start();
    const happenings: SessionHappening[] = [];
    probed ??= probeRuntimes(executables);
    const runtimes = await probed;
    const watchdog = new BoundsWatchdog({ bounds });
    const browsers = new BrowserPool({
      slots,
      runtimes: runtimes.keys(),
      extraFlags: browserFlags,
      log: silent,
      // A browser launched ahead takes half a second of CPU time, and most tests would not use it.
      max: 0,
      isOpen: () => true,
    });
    browsers.start();
    const sessions = new SessionTable({
      browsers,
      runtimes,
      showRemedy: true,
      log: silent,
      onRoom: () => undefined,
      watchdog,
      onEvent: ({ sessionId, placementEpoch }, event) => happenings.push({ sessionId, placementEpoch, event }),
    });
    const hash = createHash("sha256").update(randomUUID()).digest("hex");
    const server = new WorkerServer({ sessions, slots, log: silent, secretHash: () => hash });
    const port = await server.listen("127.0.0.1:0");
    return new WorkerUnderTest({ browsers, slots, sessions, watchdog, server, port, hash, happenings });
  }

  /** Launches a session's browser. `proxyCheck` is the host and port for the check of a suspect proxy. */
  async open(
    request: MessageInitShape<typeof CreateSessionRequestSchema> = {},
    placementEpoch = 1n,
    proxyCheck = "",
    sessionId = `ses_${randomUUID()}`,
    allowedDomains: readonly string[] = [],
  ): Promise<DrivenSession> {
    const session = new DrivenSession(this.#client, this.#metadata, { sessionId, placementEpoch });
    const launch = {
      plan: planSession(create(CreateSessionRequestSchema, request), tiers.get("enterprise")).browser,
      lifetimeMs: (request.timeoutSeconds ?? 3_600) * 1_000,
      proxyCheck,
      allowedDomains: [...allowedDomains],
      // The default of accounts.
      logs: request.logs || SessionLogLevel.ERRORS,
    };
    await session.run(fleetCommands.create, launch, { waitMs: 30_000 });
    return session;
  }

  async stop(): Promise<void> {
    this.#client.close();
    this.#watchdog.stop();
    await this.#server.stop();
    await this.browsers.stop();
    await this.slots.stop();
  }
}

type Options = GrpcCallOptions & {
  idempotencyKey?: string;
  controlEpoch?: bigint;
  holderClientId?: string;
  waitMs?: number;
  stepId?: string;
  recall?: boolean;
  variables?: MessageInitShape<typeof SecretVariableSchema>[];
};

/** Capture as a client receives it. */
export interface ReadCapture {
  readonly header: CaptureHeader;
  readonly data: Buffer;
  readonly chunkSizes: readonly number[];
}

/** Session of the worker under test, controlled as by a gateway. */
export class DrivenSession {
  readonly #client: Client;
  readonly #metadata: Metadata;
  readonly placement: Placement;

  constructor(client: Client, metadata: Metadata, placement: Placement) {
    this.#client = client;
    this.#metadata = metadata;
    this.placement = placement;
  }

  navigate(request: MessageInitShape<typeof NavigateRequestSchema>, options: Options = {}): Promise<NavigateResponse> {
    return this.run(fleetCommands.navigate, request, options);
  }

  interact(request: MessageInitShape<typeof InteractRequestSchema>, options: Options = {}): Promise<InteractResponse> {
    return this.run(fleetCommands.interact, request, options);
  }

  wait(request: MessageInitShape<typeof WaitRequestSchema>, options: Options = {}): Promise<WaitResponse> {
    return this.run(fleetCommands.wait, request, options);
  }

  observe(request: MessageInitShape<typeof ObserveRequestSchema> = {}, options: Options = {}): Promise<Observation> {
    return this.run(fleetCommands.observe, request, options);
  }

  read(request: MessageInitShape<typeof ReadRequestSchema> = {}, options: Options = {}): Promise<ReadResponse> {
    return this.run(fleetCommands.read, request, options);
  }

  state(): Promise<SessionState> {
    return this.run(fleetCommands.getState, {});
  }

  async capture(request: MessageInitShape<typeof CaptureRequestSchema>, options: Options = {}): Promise<ReadCapture> {
    const command = toCommand(fleetCommands.capture, this.#context(options), request);
    const parts: Uint8Array[] = [];
    let header: CaptureHeader | undefined;
    try {
      for await (const message of callServerStreaming(
        this.#client,
        WorkerService.method.capture,
        command,
        this.#call(options),
      )) {
        header ??= message.header;
        parts.push(message.data);
      }
    } catch (error) {
      throw statusToFailure(error);
    }
    if (!header) throw new Error("expected a capture header");
    return { header, data: Buffer.concat(parts), chunkSizes: parts.map(({ length }) => length) };
  }

  /** Uploads a file. Without `last` the stream ends early, as in a cancelled call. */
  async putFile(name: string, data: Uint8Array, last = true): Promise<PutFileAnswer> {
    const commands = async function* (context: CommandContext) {
      yield create(PutFileCommandSchema, { context, name });
      yield create(PutFileCommandSchema, { data, last });
    };
    try {
      const { putFile } = WorkerService.method;
      return await callClientStreaming(this.#client, putFile, commands(this.#context({})), this.#call({}));
    } catch (error) {
      throw statusToFailure(error);
    }
  }

  async deleteFile(name: string): Promise<void> {
    await this.run(fleetCommands.deleteFile, { name });
  }

  /** Returns the names of the session's files, newest first. */
  async fileNames(): Promise<string[]> {
    const { files } = await this.run(fleetCommands.listFiles, { limit: 100 });
    return files.map(({ file }) => file?.name ?? "");
  }

  watch(signal: AbortSignal): AsyncGenerator<Event, void, undefined> {
    const command = toCommand(fleetCommands.watch, this.#context({}), {});
    return callServerStreaming(this.#client, WorkerService.method.watch, command, { metadata: this.#metadata, signal });
  }

  thumbnails(signal: AbortSignal): AsyncGenerator<Thumbnail, void, undefined> {
    const { method } = fleetCommands.watchThumbnails;
    const command = toCommand(fleetCommands.watchThumbnails, this.#context({}), {});
    return callServerStreaming(this.#client, method, command, { metadata: this.#metadata, signal });
  }

  async destroy(): Promise<void> {
    await this.run(fleetCommands.destroy, {});
  }

  /** Runs a unary command. Rejects with the worker's failure. */
  async run<I extends DescMessage, O extends DescMessage>(
    command: FleetCommand<"unary", I, O>,
    request: MessageInitShape<I>,
    options: Options = {},
  ): Promise<MessageShape<O>> {
    try {
      const message = toCommand(command, this.#context(options), request);
      return await callUnary(this.#client, command.method, message, this.#call(options));
    } catch (error) {
      throw statusToFailure(error);
    }
  }

  #call({ signal }: GrpcCallOptions): GrpcCallOptions {
    return { metadata: this.#metadata, timeoutMs: callMs, ...(signal && { signal }) };
  }

  #context({ waitMs: timeoutMs = 0, idempotencyKey = "", controlEpoch = 0n, holderClientId = "", ...step }: Options) {
    const { stepId = "", recall = false, variables = [] } = step;
    const named = { idempotencyKey, controlEpoch, holderClientId, stepId, recall, timeoutMs, variables };
    return create(CommandContextSchema, { ...this.placement, ...named });
  }
}
