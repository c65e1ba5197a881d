import type { Socket } from "node:net";
import tls from "node:tls";
import { expect } from "vitest";
import { makeSelfSigned } from "../support/self-signed.ts";
import { closeAfterTest, listen } from "./receiver.ts";

/** Host name in the receivers' certificate, and the certificate, which senders trust. */
export const hostileName = "fixture";
export const hostileIdentity = makeSelfSigned();

/** Behavior of a hostile receiver, and the expected outcome of an attempt. */
interface Hostility {
  answer(socket: Socket): void;
  readonly becomes: object;
  /** The receiver holds the sender until its timeout. */
  readonly isHolding?: true;
}

/** Writes as fast as the peer reads, or every `every` milliseconds, until the connection ends. */
function keepWriting(socket: Socket, text: string, { first = "", every }: { first?: string; every?: number }): void {
  socket.write(first);
  if (every !== undefined) {
    const timer = setInterval(() => socket.write(text), every);
    socket.once("close", () => clearInterval(timer));
    return;
  }
  const write = () => {
    while (!socket.destroyed && socket.write(text));
  };
  socket.on("drain", write);
  write();
}

const ok = "HTTP/1.1 200 OK\r\n";
const wrong = "HTTP/1.1 500 Wrong\r\ncontent-length: 400\r\n\r\n";

/** Receivers that try to stall, flood or confuse a sender. */
export const hostilities: Readonly<Record<string, Hostility>> = {
  "never responds": { answer: () => undefined, becomes: { error: "timeout" }, isHolding: true },
  "trickles its headers": {
    answer: (socket) => keepWriting(socket, "x", { first: `${ok}x-slow: `, every: 50 }),
    becomes: { error: "timeout" },
    isHolding: true,
  },
  "sends endless informational responses": {
    answer: (socket) => keepWriting(socket, "HTTP/1.1 103 Early Hints\r\n\r\n", { every: 20 }),
    becomes: { error: "too_large" },
  },
  "sends headers of 1 MB": {
    answer: (socket) => void socket.write(`${ok}x-large: ${"x".repeat(1_000_000)}\r\n\r\n`),
    becomes: { error: "too_large" },
  },
  "sends endless headers": {
    answer: (socket) => keepWriting(socket, "x-more: and more\r\n", { first: ok }),
    becomes: { error: "too_large" },
  },
  "sends an endless body": {
    answer: (socket) => keepWriting(socket, "x".repeat(10_000), { first: `${ok}\r\n` }),
    becomes: { status: 200, body: "x".repeat(200) },
  },
  "trickles an endless body": {
    answer: (socket) => keepWriting(socket, "x", { first: "HTTP/1.1 500 Wrong\r\n\r\n", every: 50 }),
    becomes: { status: 500, body: expect.stringMatching(/^x*$/) },
  },
  "closes the connection immediately": {
    answer: (socket) => void socket.destroy(),
    becomes: { error: "connection_reset" },
  },
  "closes the connection within the headers": {
    answer: (socket) => void socket.write(`${ok}x-half`, () => socket.destroy()),
    becomes: { error: "connection_reset" },
  },
  "closes the connection within the body": {
    answer: (socket) => void socket.write(`${wrong}half`, () => socket.destroy()),
    becomes: { status: 500, body: "half", error: "connection_reset" },
  },
  "sends a binary body": {
    answer: (socket) => void socket.end(Buffer.concat([Buffer.from(`${ok}\r\na\0b`), Buffer.from([0xff, 0xe2, 0x82])])),
    becomes: { status: 200, body: "a\uFFFDb\uFFFD" },
  },
  "speaks another protocol": {
    answer: (socket) => void socket.write("220 mail.example ESMTP\r\n"),
    becomes: { error: "not_http" },
  },
  "switches to another protocol": {
    answer: (socket) => void socket.write("HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    becomes: { error: "not_http" },
  },
  "redirects elsewhere": {
    answer: (socket) => void socket.end("HTTP/1.1 307 There\r\nlocation: https://127.0.0.1/\r\n\r\nthere"),
    becomes: { status: 307, body: "there" },
  },
};

/** Starts a hostile receiver on loopback and returns its port. The receiver responds to the first byte of a request. */
export async function startHostile({ answer }: Hostility): Promise<number> {
  const server = tls.createServer(hostileIdentity, (socket) => {
    closeAfterTest(() => socket.destroy());
    socket.on("error", () => undefined);
    socket.once("data", () => answer(socket));
  });
  return listen(server);
}
