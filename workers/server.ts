import { timingSafeEqual } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { Metadata } from "@grpc/grpc-js";
import {
  FileListSchema,
  type InputPart,
  type InputProgress,
  type LendRequest,
  PutFileAnswerSchema,
  SelectionSchema,
  StepPictureSchema,
  type ViewRequest,
  WorkerService,
} from "../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { JoinResponse } from "../src/gen/pilothouse/v1/live_pb.ts";
import { CaptureStreamResponseSchema, type CdpResponse } from "../src/gen/pilothouse/v1/session_pb.ts";
import { errorTable } from "../src/platform/error-table.ts";
import { asFailure, fail, failFields } from "../src/platform/errors.ts";
import { fleetMetadata } from "../src/platform/grpc/fleet-metadata.ts";
import { type FleetTlsFiles, fleetServerCredentials } from "../src/platform/grpc/fleet-tls.ts";
import { failureToStatus, WrongAddressee } from "../src/platform/grpc/grpc-failure.ts";
import {
  addGrpcService,
  createLinkServer,
  type GrpcCall,
  type GrpcHandlers,
  listenGrpc,
  type MethodsOf,
  stopGrpcServer,
} from "../src/platform/grpc/grpc-server.ts";
import type { Log } from "./base/log.ts";
import { checkProxy } from "./egress/proxy-check.ts";
import { openUpload, sendFile } from "./files/file-transfer.ts";
import type { SlotPool } from "./isolation/slot-pool.ts";
import type { WorkerMetrics } from "./metrics.ts";
import type { ProfileShelf } from "./profiles/profile-shelf.ts";
import { giveProfile, receiveProfile } from "./profiles/profile-transfer.ts";
import type { SessionTable } from "./session/session-table.ts";

/** Code of an unexpected failure. */
const internal = errorTable.internal.code;

type WorkerHandlers = GrpcHandlers<MethodsOf<typeof WorkerService>>;

/** Milliseconds for running calls to end when the server stops. */
const stopMs = 2_000;

export interface WorkerServerOptions {
  readonly sessions: SessionTable;
  readonly slots: Pick<SlotPool, "guard">;
  readonly log: Log;
  readonly profiles?: ProfileShelf | undefined;
  readonly metrics?: Pick<WorkerMetrics, "commands">;
  /** Hex SHA-256 of the secret that gateways must present; undefined until the worker is registered. */
  secretHash(): string | undefined;
}

/** The gRPC service through which gateways command a worker. */
export class WorkerServer {
  readonly #server = createLinkServer();

  constructor({ sessions, slots, profiles, log, secretHash, metrics }: WorkerServerOptions) {
    addGrpcService(this.#server, WorkerService, makeHandlers({ sessions, slots, profiles }, observer(metrics)), {
      admit: (call) => admit(call, secretHash()),
      toStatus: (thrown) => {
        const status = failureToStatus(thrown);
        if (status.code === internal) log.error({ err: thrown }, "a command failed in an unexpected way");
        return status;
      },
    });
  }

  /** Listens on `host:port` or `unix:/path`, with TLS if certificates are given. Returns the port. */
  listen(address: string, tls?: FleetTlsFiles): Promise<number> {
    return listenGrpc(this.#server, address, fleetServerCredentials(tls));
  }

  /** Refuses new calls, and waits up to `stopMs` for running ones. */
  stop(): Promise<void> {
    return stopGrpcServer(this.#server, stopMs);
  }
}

function admit({ metadata }: GrpcCall, hash: string | undefined): void {
  const [shown] = metadata.get(fleetMetadata.workerSecretHash);
  const wanted = Buffer.from(hash ?? "");
  const given = Buffer.from(shown ?? "");
  // An unregistered worker has no secret, so no caller can present it.
  const isKnown = wanted.length > 0 && wanted.length === given.length && timingSafeEqual(wanted, given);
  if (!isKnown) throw new WrongAddressee("the caller does not know this worker");
}

type Observe = <Value>(method: string, work: Promise<Value>) => Promise<Value>;

/** Counts commands with their outcome. */
function observer(metrics: Pick<WorkerMetrics, "commands"> | undefined): Observe {
  return async (method, work) => {
    const end = metrics?.commands.startTimer({ method });
    try {
      const value = await work;
      end?.({ outcome: "ok" });
      return value;
    } catch (thrown) {
      end?.({ outcome: asFailure(thrown).slug });
      throw thrown;
    }
  };
}

function makeHandlers(
  { sessions, slots, profiles }: Pick<WorkerServerOptions, "sessions" | "slots" | "profiles">,
  observe: Observe,
): WorkerHandlers {
  return {
    create: async (_call, command) => {
      await observe("create", sessions.create(command));
      return create(EmptySchema);
    },
    navigate: async ({ signal, trailer }, { context, request }) =>
      observe("navigate", sessions.find(context).commands.navigate(context, given(request), signal, marking(trailer))),
    interact: async ({ signal, trailer }, { context, request }) =>
      observe("interact", sessions.find(context).commands.interact(context, given(request), signal, marking(trailer))),
    wait: async ({ signal }, { context, request }) =>
      observe("wait", sessions.find(context).commands.wait(context, given(request), signal)),
    getState: async (_call, { context }) => observe("state", sessions.find(context).state(context)),
    observe: async ({ signal }, { context, request }) =>
      observe("observe", sessions.find(context).commands.observe(context, given(request), signal)),
    getStepPicture: async (_call, { context, stepId }) => {
      const data = sessions.find(context).commands.pictureBefore(stepId);
      return create(StepPictureSchema, data && { data });
    },
    capture: async function* ({ signal }, { context, request }) {
      const session = sessions.find(context);
      const { header, captured } = await observe("capture", session.commands.capture(context, given(request), signal));
      await using _captured = captured;
      const chunks = captured.chunks();
      // Sent together with the header, so that most captures are one message.
      const { value: data = new Uint8Array() } = await chunks.next();
      yield create(CaptureStreamResponseSchema, { header, data });
      for await (const data of chunks) yield create(CaptureStreamResponseSchema, { data });
    },
    destroy: async (_call, { context }) => {
      if (context) sessions.destroy(context);
      return create(EmptySchema);
    },
    watch: ({ signal }, { context }) => sessions.find(context).watch(signal),
    putFile: async ({ signal: caller }, commands) => {
      const upload = await openUpload(commands);
      using use = sessions.find(upload.context).useFiles(upload.context, caller);
      return create(PutFileAnswerSchema, await observe("put_file", use.files.put(upload, use.signal)));
    },
    getFile: async function* ({ signal: caller }, { context, name }) {
      using use = sessions.find(context).useFiles(context, caller);
      await using file = await observe("get_file", use.files.open(name, context?.clientId !== ""));
      yield* sendFile(file, use.signal);
    },
    deleteFile: async ({ signal: caller }, { context, name }) => {
      using use = sessions.find(context).useFiles(context, caller);
      use.files.delete(name);
      return create(EmptySchema);
    },
    listFiles: async (_call, { context, limit, before }) => {
      const all = sessions.find(context).files;
      const listed = before === 0n ? all : all.filter(({ position }) => position < before);
      return create(FileListSchema, { files: listed.slice(0, limit) });
    },
    setControl: async (_call, { context }) => {
      await observe("set_control", sessions.find(context).setControl(context));
      return create(EmptySchema);
    },
    readSelection: async ({ signal }, { context }) => {
      const text = await sessions.find(context).commands.readSelection(context, signal);
      return create(SelectionSchema, { text });
    },
    answerQuestion: async (_call, { context, answer }) => {
      await sessions.find(context).answer(context, given(answer));
      return create(EmptySchema);
    },
    sendInput: async (_call, command) => sessions.find(command.context).input.take(command),
    streamInput: ({ signal }, parts) => streamInput(sessions, parts, signal),
    lend: ({ signal }, requests) => lend(sessions, requests, signal),
    view: (_call, requests) => view(sessions, requests),
    checkProxy: async ({ signal }, command) => {
      await observe("check_proxy", checkProxy(slots.guard, command, signal));
      return create(EmptySchema);
    },
    putProfile: async (_call, chunks) => {
      if (!profiles) throw notBuilt("profiles");
      await observe("put_profile", receiveProfile(profiles, chunks));
      return create(EmptySchema);
    },
    takeProfile: ({ signal }, { context }) => {
      if (!profiles) throw notBuilt("profiles");
      return giveProfile(profiles, context, signal);
    },
  };
}

/** Connects a CDP client. Its first message names the session. */
async function* lend(
  sessions: SessionTable,
  requests: AsyncIterable<LendRequest>,
  signal: AbortSignal,
): AsyncGenerator<CdpResponse> {
  const all = requests[Symbol.asyncIterator]();
  const { value: first } = await all.next();
  const rest = { [Symbol.asyncIterator]: () => all };
  yield* sessions.find(first?.context).lend(rest, signal);
}

/** Forwards input. The first part names the session. */
async function* streamInput(
  sessions: SessionTable,
  parts: AsyncIterable<InputPart>,
  signal: AbortSignal,
): AsyncGenerator<InputProgress> {
  const rest = parts[Symbol.asyncIterator]();
  const { value: first } = await rest.next();
  async function* all(): AsyncGenerator<InputPart> {
    if (first) yield first;
    yield* { [Symbol.asyncIterator]: () => rest };
  }
  yield* sessions.find(first?.context).input.follow(all(), signal);
}

/** Shows a session to a viewer. The first message names the session. */
async function* view(sessions: SessionTable, requests: AsyncIterable<ViewRequest>): AsyncGenerator<JoinResponse> {
  const all = requests[Symbol.asyncIterator]();
  const { value: first } = await all.next();
  const { context, viewer, request }: Partial<ViewRequest> = first ?? {};
  const isHidden = request?.join?.hidden ?? false;
  yield* sessions.find(context).view({ who: given(viewer), isHidden, requests: { [Symbol.asyncIterator]: () => all } });
}

/** Marks a response as a replay of an earlier one. */
function marking(trailer: Metadata): () => void {
  return () => trailer.set(fleetMetadata.replayed, "true");
}

function given<Request>(request: Request | undefined): Request {
  if (request === undefined) throw failFields("validation-failed", { request: "is required" });
  return request;
}

function notBuilt(what: string): Error {
  return fail("driver-not-integrated", {}, { detail: `this worker does not have ${what}` });
}
