import type { JsonObject, Message } from "@bufbuild/protobuf";
import type { RawData, WebSocket } from "ws";
import { errorTable } from "../../src/platform/error-table.ts";
import { type FieldFault, failFaults } from "../../src/platform/errors.ts";
import { compileReader } from "../../src/platform/rest-json/reader.ts";
import { compileWriter } from "../../src/platform/rest-json/writer.ts";
import type { GatewayCall } from "../call.ts";
import { MessageQueue } from "../message-queue.ts";
import type { Gate } from "../policies/index.ts";
import type { Problems } from "../problems.ts";

// A client that does not read is not written to beyond this.
const BUFFERED_BYTES = 1024 * 1024;
const CLOSE_CLIENT_FAULT = 1008;
const CLOSE_COME_BACK = 1013;

interface StreamContext {
  readonly gate: Gate;
  readonly problems: Problems;
  /** The code to close with when the method has ended. */
  closeCode(): number;
}

/** Runs one bidirectional method over an accepted WebSocket: one JSON message a text frame, both ways. */
export function serveStream(
  client: WebSocket,
  call: GatewayCall,
  variables: Readonly<Record<string, string>>,
  { gate, problems, closeCode }: StreamContext,
): void {
  const { input, output } = call.served.method;
  const read = compileReader(input, new Set(Object.keys(variables)));
  const write = compileWriter(output);
  const bound = input.fields.flatMap((field) => {
    const value = variables[field.name];
    return value === undefined ? [] : [[field.localName, value] as const];
  });
  const requests = new MessageQueue<Message>(client);
  const answerFault = (thrown: unknown, json: unknown): void => {
    const id = typeof json === "object" && json !== null && "id" in json && typeof json.id === "string" ? json.id : "";
    send(client, { ...(id && { id }), error: problems.document(thrown, call.requestId) });
  };

  client.on("message", (data: RawData, isBinary: boolean) => {
    let json: unknown;
    try {
      json = isBinary ? undefined : JSON.parse(textOf(data));
    } catch {
      json = undefined;
    }
    if (json === undefined) {
      client.close(CLOSE_CLIENT_FAULT, "each message is one JSON object in a text frame");
      return;
    }
    // `{"end": true}` is the half-close that WebSocket lacks: what is queued is finished, then the server closes.
    if (isEnd(json)) {
      requests.end();
      return;
    }
    const faults: FieldFault[] = [];
    const message = read(json, faults);
    if (faults.length > 0) {
      answerFault(failFaults("validation-failed", faults), json);
      return;
    }
    requests.push(Object.assign(message, Object.fromEntries(bound)));
  });
  client.on("close", () => {
    requests.end();
    call.cancel();
  });
  client.on("error", () => client.terminate());
  void pump(client, call, gate.bidiStream(call, requests), write, { problems, closeCode });
}

async function pump(
  client: WebSocket,
  call: GatewayCall,
  answers: AsyncIterable<Message>,
  write: (message: Message) => JsonObject,
  { problems, closeCode }: Pick<StreamContext, "problems" | "closeCode">,
): Promise<void> {
  try {
    for await (const answer of answers) {
      await send(client, write(answer));
    }
    client.close(closeCode());
  } catch (thrown) {
    const failure = problems.failure(thrown, call.requestId);
    await send(client, { error: problems.document(failure, call.requestId) });
    client.close(errorTable[failure.slug].status < 500 ? CLOSE_CLIENT_FAULT : CLOSE_COME_BACK, failure.slug);
  }
}

/** Sends one message; waits while the client is behind. */
function send(client: WebSocket, json: object): Promise<void> {
  return new Promise((resolve) => {
    const behind = client.bufferedAmount > BUFFERED_BYTES;
    // The callback comes when the frame was written out, or with the error of a closed socket, which ends the call.
    client.send(JSON.stringify(json), () => behind && resolve());
    if (!behind) {
      resolve();
    }
  });
}

function textOf(data: RawData): string {
  return Array.isArray(data) ? Buffer.concat(data).toString("utf8") : Buffer.from(data as ArrayBuffer).toString("utf8");
}

function isEnd(json: unknown): boolean {
  return typeof json === "object" && json !== null && "end" in json && json.end === true;
}
