import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** Request that a server received. */
export interface Received {
  readonly line: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Answers one request. */
export type Step = (response: ServerResponse, request: Received) => void;

/** Server that answers each request by the next step of a script. The last step repeats. */
export interface MisbehavingServer extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
}

/** Starts a server that follows a script. */
export async function startMisbehaving(...steps: readonly Step[]): Promise<MisbehavingServer> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const step = steps[Math.min(received.length, steps.length - 1)];
    const one = { line: `${request.method} ${request.url}`, headers: request.headers, body: await text(request) };
    received.push(one);
    step?.(response, one);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers with JSON. */
export function answers(status: number, body: object, headers: Record<string, string> = {}): Step {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

/** Answers with a problem document. */
export function fails(status: number, slug: string, headers: Record<string, string> = {}, more: object = {}): Step {
  const problem = { type: `https://errors.example/errors/${slug}`, title: slug, status, ...more };
  return answers(status, problem, { "x-request-id": "req_1", ...headers });
}

/** Resets the connection without an answer. */
export const resets: Step = (response) => void response.socket?.resetAndDestroy();

/** Sends a part of the body and then resets the connection. */
export const breaksMidway: Step = (response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
  response.write('{"id":', () => response.socket?.resetAndDestroy());
};

/** Sends a part of the body and then nothing. */
export const stalls: Step = (response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
  response.write('{"id":');
};

/** Sends a space every 50 ms, so that no read waits for long. */
export const drips: Step = (response) => {
  response.writeHead(200, { "content-type": "application/json" });
  const timer = setInterval(() => response.write(" "), 50);
  response.once("close", () => clearInterval(timer));
};

/** Frame that the service sends first, with the id after which the stream starts. */
export const startFrame = (id: string): string => `: open\nid: ${id}\n\n`;

/** Sends the frames of an event stream, then ends or resets the connection, or sends nothing more. */
export function streams(frames: readonly string[], end: "end" | "reset" | "silence" = "end"): Step {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`: open\n\n${frames.join("")}`, () => {
      if (end === "end") response.end();
      if (end === "reset") response.socket?.resetAndDestroy();
    });
  };
}

/** Formats an event as a frame. */
export function frame(id: string, type: string, data: object = {}): string {
  const event = { id, type, created_at: "2026-11-25T10:00:00.000Z", data };
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(event)}\n\n`;
}
