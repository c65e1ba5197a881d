import { createHash, randomUUID } from "node:crypto";
import { create, type DescMessage, fromBinary, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials, Metadata, Server } from "@grpc/grpc-js";
import {
  type Command,
  ControlService,
  type EndedSessionLogSchema,
  FileListSchema,
  HeartbeatRequestSchema,
  type HeartbeatResponse,
  InputProgressSchema,
  Isolation,
  PutFileAnswerSchema,
  RegisterRequestSchema,
  ReportRequestSchema,
  SelectionSchema,
  SessionLogPageSchema,
  StepPictureSchema,
  StoreLogsRequestSchema,
  type WorkerEventSchema,
  WorkerService,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SendInputResponseSchema } from "../../src/gen/pilothouse/v1/agent_input_pb.ts";
import { EventSchema } from "../../src/gen/pilothouse/v1/common_pb.ts";
import { JoinResponseSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import {
  CaptureKind,
  CaptureStreamResponseSchema,
  CdpResponseSchema,
  FetchStreamResponseSchema,
  InteractResponseSchema,
  NavigateResponseSchema,
  ObservationSchema,
  ReadResponseSchema,
  SessionStateSchema,
  ThumbnailSchema,
  WaitResponseSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fleetCommands } from "../../src/platform/grpc/fleet-commands.ts";
import {
  addGrpcService,
  type GrpcHandlers,
  listenGrpc,
  type MethodsOf,
} from "../../src/platform/grpc/fleet-grpc-server.ts";
import { fleetMetadata } from "../../src/platform/grpc/fleet-metadata.ts";
import { callUnary } from "../../src/platform/grpc/grpc-codec.ts";
import { failureToStatus, WrongAddressee } from "../../src/platform/grpc/grpc-failure.ts";

type Handlers = GrpcHandlers<MethodsOf<typeof WorkerService>>;

export function requestOf<Request extends DescMessage>(
  { request: schema }: { readonly request: Request },
  { request }: Command,
): MessageShape<Request> {
  return fromBinary(schema, request);
}

/** Deviations from answering immediately. */
export interface FakeWorkerOptions {
  readonly control: string;
  readonly token: string;
  readonly slots?: number;
  readonly pool?: string;
  /** Methods that the worker lacks, like a worker of an earlier release. */
  readonly lacks?: readonly (keyof Handlers)[];
  readonly handlers?: Partial<Handlers>;
}

/** Worker without browsers that speaks the real gRPC protocol. */
export class FakeWorker {
  readonly held = new Map<string, bigint>();
  /** Sessions whose profiles can be collected, with the failure that replaces the profile. */
  readonly shelved = new Map<string, { placementEpoch: bigint; failure: string }>();
  readonly bootId = randomUUID();
  id = "";
  secret = "";
  incarnation = 0n;
  /** Makes browsers that are launched ahead fail. */
  launchesFail = false;
  readonly #options: FakeWorkerOptions;
  readonly #server = new Server();
  readonly #control: Client;
  #port = 0;
  #beat: NodeJS.Timeout | undefined;

  constructor(options: FakeWorkerOptions) {
    this.#options = options;
    this.#control = new Client(options.control, credentials.createInsecure());
    const { lacks = [] } = options;
    const methods = WorkerService.methods.filter(({ localName }) => !lacks.some((name) => name === localName));
    addGrpcService(
      this.#server,
      { ...WorkerService, methods } as typeof WorkerService,
      { ...this.#handlers(), ...options.handlers },
      {
        admit: ({ metadata }) => {
          const hash = createHash("sha256").update(this.secret).digest("hex");
          if (metadata.get(fleetMetadata.workerSecretHash)[0] !== hash) throw new WrongAddressee("not this worker");
        },
        toStatus: failureToStatus,
      },
    );
  }

  /** Listens, registers and sends heartbeats. */
  async start(): Promise<void> {
    this.#port = await listenGrpc(this.#server, "127.0.0.1:0");
    await this.register();
    await this.heartbeat();
    this.#beat = setInterval(() => this.heartbeat().catch(() => undefined), 500);
  }

  async register(changes: MessageInitShape<typeof RegisterRequestSchema> = {}): Promise<void> {
    const request = create(RegisterRequestSchema, {
      workerToken: this.#options.token,
      workerId: this.id,
      workerSecret: this.secret,
      address: `127.0.0.1:${this.#port}`,
      runtimes: ["headless-shell", "chromium"],
      slots: this.#options.slots ?? 4,
      pool: this.#options.pool ?? "",
      isolation: Isolation.NAMESPACE,
      bootId: this.bootId,
      ...changes,
    });
    const answer = await callUnary(this.#control, ControlService.method.register, request);
    this.id = answer.workerId;
    this.secret = answer.workerSecret || this.secret;
    this.incarnation = answer.incarnation;
  }

  /** Sends a heartbeat and ends the sessions that the control process does not want. Returns the response. */
  async heartbeat(changes: MessageInitShape<typeof HeartbeatRequestSchema> = {}): Promise<HeartbeatResponse> {
    const sessions = [...this.held].map(([sessionId, placementEpoch]) => ({ sessionId, placementEpoch }));
    const profiles = [...this.shelved].map(([sessionId, profile]) => ({ sessionId, ...profile }));
    const { incarnation, launchesFail } = this;
    const told = { incarnation, launchesFail, sessions, profiles };
    const request = create(HeartbeatRequestSchema, { ...told, ...changes });
    const options = { metadata: this.metadata(), timeoutMs: 2_000 };
    const answer = await callUnary(this.#control, ControlService.method.heartbeat, request, options);
    for (const { sessionId } of answer.unwanted) this.held.delete(sessionId);
    for (const { sessionId } of answer.settledProfiles) this.shelved.delete(sessionId);
    return answer;
  }

  async report(...events: MessageInitShape<typeof WorkerEventSchema>[]): Promise<void> {
    const request = create(ReportRequestSchema, { incarnation: this.incarnation, events });
    await callUnary(this.#control, ControlService.method.report, request, { metadata: this.metadata() });
  }

  /** Sends logs of ended sessions. Returns the number of stored logs. */
  async storeLogs(...logs: MessageInitShape<typeof EndedSessionLogSchema>[]): Promise<number> {
    const request = create(StoreLogsRequestSchema, { logs });
    const options = { metadata: this.metadata() };
    return (await callUnary(this.#control, ControlService.method.storeLogs, request, options)).stored;
  }

  metadata(): Metadata {
    const metadata = new Metadata();
    metadata.set(fleetMetadata.workerId, this.id);
    metadata.set(fleetMetadata.workerSecret, this.secret);
    return metadata;
  }

  /** Stops heartbeats but keeps the port open, as if the machine had vanished. */
  fallSilent(): void {
    clearInterval(this.#beat);
  }

  /** Breaks all connections, as if the process had been killed. */
  die(): void {
    this.fallSilent();
    this.#server.forceShutdown();
    this.#control.close();
  }

  #handlers(): Handlers {
    const page = { url: "https://example.com/", title: "Example Domain", durationMs: 1 };
    return {
      create: async (_call, { context }) => {
        this.held.set(context?.sessionId ?? "", context?.placementEpoch ?? 0n);
        return create(EmptySchema);
      },
      navigate: async () => create(NavigateResponseSchema, { ...page, httpStatus: 200 }),
      interact: async () => create(InteractResponseSchema, page),
      wait: async () => create(WaitResponseSchema, page),
      observe: async () => create(ObservationSchema, { url: page.url }),
      read: async () => create(ReadResponseSchema, { markdown: page.url }),
      getState: async () => create(SessionStateSchema, { url: page.url }),
      capture: async function* () {
        const header = { kind: CaptureKind.SCREENSHOT, contentType: "image/png", bytes: 6n };
        yield create(CaptureStreamResponseSchema, { header });
        yield create(CaptureStreamResponseSchema, { data: Buffer.from("abc") });
        yield create(CaptureStreamResponseSchema, { data: Buffer.from("def") });
      },
      destroy: async (_call, { context }) => {
        this.held.delete(context?.sessionId ?? "");
        return create(EmptySchema);
      },
      watch: async function* ({ signal }) {
        yield create(EventSchema, { type: "session.console" });
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
      watchThumbnails: async function* (_call, { context }) {
        yield create(ThumbnailSchema, { sessionId: context?.sessionId ?? "", contentType: "image/jpeg" });
      },
      async *proxyCdp(_call, requests) {
        yield create(CdpResponseSchema, {});
        for await (const { data, last } of requests)
          if (data.length > 0) yield create(CdpResponseSchema, { data, last });
      },
      async *view(_call, requests) {
        for await (const { viewer } of requests)
          if (viewer) yield create(JoinResponseSchema, { hello: { viewer, media: "frames" } });
      },
      readFrames: async function* (_call, requests) {
        for await (const { request } of requests) if (request) yield create(JoinResponseSchema, {});
      },
      setControl: async () => create(EmptySchema),
      setTimeouts: async () => create(EmptySchema),
      sendInput: async (_call, command) => {
        const { event, events } = requestOf(fleetCommands.sendInput, command);
        return create(SendInputResponseSchema, { accepted: event ? 1 : events.length });
      },
      async *streamInput(_call, parts) {
        let accepted = 0;
        for await (const { number, events } of parts) {
          accepted += events.length;
          yield create(InputProgressSchema, { number, accepted });
        }
      },
      readSelection: async () => create(SelectionSchema, {}),
      getStepPicture: async () => create(StepPictureSchema, {}),
      answerQuestion: async () => create(EmptySchema),
      fetch: async function* (_call, { request }) {
        const header = {
          url: request?.url ?? "",
          title: page.title,
          markdown: page.url,
          complete: true,
          durationMs: 1,
        };
        yield create(FetchStreamResponseSchema, { header });
      },
      checkProxy: async () => create(EmptySchema),
      putProfile: async () => create(EmptySchema),
      takeProfile: async function* () {
        yield* [];
      },
      async putFile(_call, requests) {
        for await (const _ of requests);
        return create(PutFileAnswerSchema);
      },
      getFile: async function* () {
        yield* [];
      },
      deleteFile: async () => create(EmptySchema),
      listFiles: async () => create(FileListSchema),
      readLog: async () => create(SessionLogPageSchema),
      followLog: async function* () {
        yield* [];
      },
    };
  }
}
