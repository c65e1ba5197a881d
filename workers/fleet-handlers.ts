import { create, type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import {
  type Command,
  type CommandContext,
  CommandContextSchema,
  FileListSchema,
  LaunchRequestSchema,
  PutFileAnswerSchema,
  SelectionSchema,
  StepPictureSchema,
  type WorkerService,
} from "../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { CaptureStreamResponseSchema, FetchStreamResponseSchema } from "../src/gen/pilothouse/v1/session_pb.ts";
import { asFailure, fail, failFields } from "../src/platform/errors.ts";
import { fleetCommands } from "../src/platform/grpc/fleet-commands.ts";
import type { GrpcCall, GrpcHandlers, MethodsOf } from "../src/platform/grpc/fleet-grpc-server.ts";
import { fleetMetadata } from "../src/platform/grpc/fleet-metadata.ts";
import { inTraceOf } from "../src/platform/traces/spans.ts";
import { checkProxy } from "./egress/proxy-check.ts";
import type { FetchBrowsers } from "./fetch/fetch-browsers.ts";
import { openUpload, sendFile } from "./files/file-transfer.ts";
import type { SlotPool } from "./isolation/slot-pool.ts";
import type { ProfileStore } from "./profiles/profile-store.ts";
import { receiveProfile, sendProfile } from "./profiles/profile-transfer.ts";
import type { ReceivedCommand } from "./session/command-runner.ts";
import type { Session } from "./session/session.ts";
import type { SessionTable } from "./session/session-table.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

/** Parts of a worker that its commands use. */
export interface WorkerParts {
  readonly sessions: SessionTable;
  readonly fetches?: FetchBrowsers | undefined;
  readonly slots: Pick<SlotPool, "guard">;
  readonly profiles?: ProfileStore | undefined;
  readonly metrics?: Pick<WorkerMetrics, "commands">;
}

/** Runs a part of a call in a span of the caller's trace, and measures the part by method and outcome. */
type Observe = <Value>(method: string, work: () => Promise<Value>) => Promise<Value>;

/** Fields of a command's context that its span needs. */
type Caller = Partial<Pick<CommandContext, "traceparent" | "sessionId">>;

type ObserverOf = (call: GrpcCall, caller?: Caller) => Observe;

function createObserver(metrics: Pick<WorkerMetrics, "commands"> | undefined): ObserverOf {
  return ({ metadata }, { traceparent = "", sessionId } = {}) =>
    async (method, work) => {
      const [calling = traceparent] = metadata.get(fleetMetadata.traceparent).map(String);
      const about = { kind: "server", attributes: sessionId ? { "pilothouse.session.id": sessionId } : {} } as const;
      const end = metrics?.commands.startTimer({ method });
      try {
        const value = await inTraceOf(calling, `worker ${method}`, about, work);
        end?.({ outcome: "ok" });
        return value;
      } catch (thrown) {
        end?.({ outcome: asFailure(thrown).slug });
        throw thrown;
      }
    };
}

/** Creates the handlers of all methods by which gateways command a worker. */
export function createWorkerHandlers({
  sessions,
  fetches,
  slots,
  profiles,
  metrics,
}: WorkerParts): GrpcHandlers<MethodsOf<typeof WorkerService>> {
  const observerOf = createObserver(metrics);

  /** Returns a handler that finds the session of a command, decodes the request and calls `run`. */
  function onSession<Request extends DescMessage, Answer>(
    { request: schema }: { readonly request: Request },
    run: (session: Session, command: ReceivedCommand<MessageShape<Request>>, observe: Observe) => Answer,
  ): (call: GrpcCall, command: Command) => Answer {
    return (call, { context = create(CommandContextSchema), request: bytes }) => {
      const session = sessions.find(context);
      const onReplay = (): void => call.trailer.set(fleetMetadata.replayed, "true");
      const command = { context, request: fromBinary(schema, bytes), bytes, caller: call.signal, onReplay };
      return run(session, command, observerOf(call, context));
    };
  }

  return {
    create: async (call, { context, request }) => {
      const launch = () => sessions.create(required(context), fromBinary(LaunchRequestSchema, request));
      await observerOf(call, context)("create", launch);
      return create(EmptySchema);
    },
    navigate: onSession(fleetCommands.navigate, ({ commands }, command, observe) =>
      observe("navigate", () => commands.navigate(command)),
    ),
    interact: onSession(fleetCommands.interact, ({ commands }, command, observe) =>
      observe("interact", () => commands.interact(command)),
    ),
    wait: onSession(fleetCommands.wait, ({ commands }, command, observe) =>
      observe("wait", () => commands.wait(command)),
    ),
    getState: onSession(fleetCommands.getState, (session, { context, request }, observe) =>
      observe("state", () => session.state(context, request)),
    ),
    observe: onSession(fleetCommands.observe, ({ commands }, command, observe) =>
      observe("observe", () => commands.observe(command)),
    ),
    read: onSession(fleetCommands.read, ({ commands }, command, observe) =>
      observe("read", () => commands.read(command)),
    ),
    getStepPicture: onSession(fleetCommands.getStepPicture, async ({ commands }, { request }) => {
      const data = commands.pictureBefore(request.stepId);
      return create(StepPictureSchema, data && { data });
    }),
    capture: onSession(fleetCommands.capture, async function* ({ commands }, command, observe) {
      const { header, captured } = await observe("capture", () => commands.capture(command));
      await using _captured = captured;
      const chunks = captured.chunks();
      // The first chunk is sent together with the header, so that most captures need only one message.
      const { value: data = new Uint8Array() } = await chunks.next();
      yield create(CaptureStreamResponseSchema, { header, data });
      for await (const data of chunks) yield create(CaptureStreamResponseSchema, { data });
    }),
    destroy: async (_call, { context }) => {
      if (context) sessions.destroy(context);
      return create(EmptySchema);
    },
    setTimeouts: onSession(fleetCommands.setTimeouts, async (session, { request }) => {
      session.setTimeouts(request);
      return create(EmptySchema);
    }),
    watch: onSession(fleetCommands.watch, (session, { caller }) => session.watch(caller)),
    watchThumbnails: onSession(fleetCommands.watchThumbnails, ({ thumbnails }, { caller }) => thumbnails.read(caller)),
    putFile: async (call, commands) => {
      const upload = await openUpload(commands);
      using use = sessions.find(upload.context).useFiles(upload.context, call.signal);
      const observe = observerOf(call, upload.context);
      return create(PutFileAnswerSchema, await observe("put_file", () => use.files.put(upload, use.signal)));
    },
    getFile: onSession(fleetCommands.getFile, async function* (session, { context, request, caller }, observe) {
      using use = session.useFiles(context, caller);
      await using file = await observe("get_file", () => use.files.open(request.name, context.clientId !== ""));
      yield* sendFile(file, use.signal);
    }),
    deleteFile: onSession(fleetCommands.deleteFile, async (session, { context, request, caller }) => {
      using use = session.useFiles(context, caller);
      use.files.delete(request.name);
      return create(EmptySchema);
    }),
    listFiles: onSession(fleetCommands.listFiles, async ({ files }, { request: { limit, before } }) => {
      const listed = before === 0n ? files : files.filter(({ position }) => position < before);
      return create(FileListSchema, { files: listed.slice(0, limit) });
    }),
    readLog: onSession(fleetCommands.readLog, async (session, { request: { after, limit } }) =>
      session.readLog(after, limit),
    ),
    followLog: onSession(fleetCommands.followLog, (session, { request: { after }, caller }) =>
      session.followLog(after, caller),
    ),
    setControl: onSession(fleetCommands.setControl, async (session, { context }, observe) => {
      await observe("set_control", () => session.setControl(context));
      return create(EmptySchema);
    }),
    readSelection: onSession(fleetCommands.readSelection, async ({ commands }, { context, caller }) => {
      return create(SelectionSchema, { text: await commands.readSelection(context, caller) });
    }),
    answerQuestion: onSession(fleetCommands.answerQuestion, async (session, { context, request }) => {
      await session.answer(context, request);
      return create(EmptySchema);
    }),
    sendInput: onSession(fleetCommands.sendInput, async ({ input }, { context, request }) =>
      input.take(context, request),
    ),
    async *streamInput({ signal }, parts) {
      const { first, all } = await peekFirst(parts);
      yield* sessions.find(first?.context).input.follow(all, signal);
    },
    async *proxyCdp({ signal }, requests) {
      const { first, rest } = await peekFirst(requests);
      yield* sessions.find(first?.context).proxyCdp(rest, signal);
    },
    async *view(_call, requests) {
      const { first, rest } = await peekFirst(requests);
      const isHidden = first?.request?.join?.hidden ?? false;
      const joining = { who: required(first?.viewer), isHidden, requests: rest };
      yield* sessions.find(first?.context).view(joining);
    },
    async *readFrames(_call, requests) {
      const { first, rest } = await peekFirst(requests);
      yield* sessions.find(first?.context).frames(rest);
    },
    async *fetch(call, command) {
      if (!fetches) throw notAvailable("fetches");
      await using page = await observerOf(call, command)("fetch", () => fetches.fetch(command, call.signal));
      const { header, screenshot, pdf } = page;
      yield create(FetchStreamResponseSchema, { header });
      if (screenshot)
        for await (const chunk of screenshot.chunks()) yield create(FetchStreamResponseSchema, { screenshot: chunk });
      if (pdf) for await (const chunk of pdf.chunks()) yield create(FetchStreamResponseSchema, { pdf: chunk });
    },
    checkProxy: async (call, command) => {
      await observerOf(call, command)("check_proxy", () => checkProxy(slots.guard, command, call.signal));
      return create(EmptySchema);
    },
    putProfile: async (call, chunks) => {
      if (!profiles) throw notAvailable("profiles");
      await observerOf(call)("put_profile", () => receiveProfile(profiles, chunks));
      return create(EmptySchema);
    },
    takeProfile: ({ signal }, { context }) => {
      if (!profiles) throw notAvailable("profiles");
      return sendProfile(profiles, context, signal);
    },
  };
}

/**
 * Reads the first message of a stream, which names the session. `rest` yields the later messages, and `all` yields
 * every message.
 */
async function peekFirst<Message>(messages: AsyncIterable<Message>) {
  const iterator = messages[Symbol.asyncIterator]();
  const next = await iterator.next();
  const first = next.done ? undefined : next.value;
  const rest: AsyncIterable<Message> = { [Symbol.asyncIterator]: () => iterator };
  async function* all(): AsyncGenerator<Message> {
    if (first) yield first;
    yield* rest;
  }
  return { first, rest, all: all() };
}

function required<Request>(request: Request | undefined): Request {
  if (request === undefined) throw failFields("validation-failed", { request: "is required" });
  return request;
}

function notAvailable(what: string): Error {
  return fail("driver-not-integrated", {}, { detail: `this worker does not have ${what}` });
}
