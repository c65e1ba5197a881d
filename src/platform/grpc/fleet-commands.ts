import { create, type DescMessage, type DescMethod, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import {
  type Command,
  type CommandContextSchema,
  CommandSchema,
  FileListRequestSchema,
  LaunchRequestSchema,
  ReadLogRequestSchema,
  StateRequestSchema,
  StepPictureRequestSchema,
  TakeProfileRequestSchema,
  TimeoutsRequestSchema,
  WorkerService,
} from "../../gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SendInputRequestSchema } from "../../gen/pilothouse/v1/agent_input_pb.ts";
import { DeleteFileRequestSchema, GetFileRequestSchema } from "../../gen/pilothouse/v1/file_pb.ts";
import { LiveAnswerSchema } from "../../gen/pilothouse/v1/live_pb.ts";
import {
  CaptureRequestSchema,
  InteractRequestSchema,
  NavigateRequestSchema,
  ObserveRequestSchema,
  ReadRequestSchema,
  WaitRequestSchema,
} from "../../gen/pilothouse/v1/session_pb.ts";
import type { TypedMethod } from "./grpc-codec.ts";

/** A method of WorkerService, and the type of the request in its Command. */
export interface FleetCommand<Kind, Request extends DescMessage, Response extends DescMessage> {
  readonly method: TypedMethod<Kind, typeof CommandSchema, Response> & DescMethod;
  readonly request: Request;
}

const { method } = WorkerService;

/** Commands to a session, each with a single request message. */
export const fleetCommands = {
  create: { method: method.create, request: LaunchRequestSchema },
  navigate: { method: method.navigate, request: NavigateRequestSchema },
  interact: { method: method.interact, request: InteractRequestSchema },
  wait: { method: method.wait, request: WaitRequestSchema },
  observe: { method: method.observe, request: ObserveRequestSchema },
  read: { method: method.read, request: ReadRequestSchema },
  capture: { method: method.capture, request: CaptureRequestSchema },
  getState: { method: method.getState, request: StateRequestSchema },
  getStepPicture: { method: method.getStepPicture, request: StepPictureRequestSchema },
  destroy: { method: method.destroy, request: EmptySchema },
  setTimeouts: { method: method.setTimeouts, request: TimeoutsRequestSchema },
  watch: { method: method.watch, request: EmptySchema },
  watchThumbnails: { method: method.watchThumbnails, request: EmptySchema },
  setControl: { method: method.setControl, request: EmptySchema },
  sendInput: { method: method.sendInput, request: SendInputRequestSchema },
  readSelection: { method: method.readSelection, request: EmptySchema },
  answerQuestion: { method: method.answerQuestion, request: LiveAnswerSchema },
  takeProfile: { method: method.takeProfile, request: TakeProfileRequestSchema },
  getFile: { method: method.getFile, request: GetFileRequestSchema },
  deleteFile: { method: method.deleteFile, request: DeleteFileRequestSchema },
  readLog: { method: method.readLog, request: ReadLogRequestSchema },
  followLog: { method: method.followLog, request: ReadLogRequestSchema },
  listFiles: { method: method.listFiles, request: FileListRequestSchema },
} as const;

export function toCommand<Request extends DescMessage>(
  { request: schema }: { readonly request: Request },
  context: MessageInitShape<typeof CommandContextSchema>,
  request: MessageInitShape<Request>,
): Command {
  return create(CommandSchema, { context, request: toBinary(schema, create(schema, request)) });
}
