import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type DriveRequest, DriveRequestSchema } from "../../../src/gen/pilothouse/v1/session_pb.ts";
import { twentyCommands } from "./drive-commands.ts";

/** Yields the twenty commands as messages. The first message contains the session ID. */
export async function* driveRequests(sessionId: string, url: string): AsyncGenerator<DriveRequest> {
  for (const [index, command] of twentyCommands(url).entries()) {
    const request = fromJson(DriveRequestSchema, command as unknown as JsonValue);
    yield create(DriveRequestSchema, { ...request, ...(index === 0 && { sessionId }) });
  }
}
