import type { Socket } from "node:net";

/** An HTTP answer for a connection of which Node has made no response object. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Writes an HTTP/1.1 answer on a socket and closes it. */
export function endWithAnswer(socket: Socket, { status, headers, body }: RawAnswer): void {
  const all = { ...headers, "content-length": String(Buffer.byteLength(body)), connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n${body}`);
}
