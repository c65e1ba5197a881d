import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { createLog } from "../../src/platform/log.ts";
import { makeSelfSigned } from "../support/self-signed.ts";
import { startTestGateway } from "../support/test-gateway.ts";

const readEvery = 10_000;

const fingerprintOf = ({ cert }: { cert: string }): string => new X509Certificate(cert).fingerprint256;

async function open(port: number): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

/** Returns the certificates that new connections to the ports receive. */
async function served(ports: readonly number[]): Promise<string[]> {
  const sockets = await Promise.all(ports.map(open));
  return sockets.map((socket) => socket.getPeerCertificate().fingerprint256);
}

/** Returns whether a connection answers a request. */
async function answers(socket: TLSSocket): Promise<boolean> {
  socket.write("GET /v1/status HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const [head] = await once(socket, "data");
  return String(head).startsWith("HTTP/1.1 ");
}

test("uses a replaced certificate on both ports for new connections, and keeps open ones", async () => {
  const directory = await mkdtemp(join(tmpdir(), "certificate-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const [TLS_CERT, TLS_KEY] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const [first, second] = [makeSelfSigned(), makeSelfSigned()];
  await Promise.all([writeFile(TLS_CERT, first.cert), writeFile(TLS_KEY, first.key)]);
  const said: string[] = [];
  const log = createLog("info", { write: (line) => said.push(JSON.parse(line).msg) });
  await using gateway = await startTestGateway({ TLS_CERT, TLS_KEY }, { log });
  const ports = [gateway.url, `http://${gateway.grpcAddress}`].map((url) => Number(new URL(url).port));
  const kept = await open(ports[0] ?? 0);
  expect(await served(ports)).toEqual([fingerprintOf(first), fingerprintOf(first)]);

  // Between two writes, certificate and key do not match.
  await writeFile(TLS_CERT, second.cert);
  gateway.running.pass(readEvery);
  await expect.poll(() => said).toContain("failed to read the certificate again; the previous one stays in use");
  expect(await served(ports)).toEqual([fingerprintOf(first), fingerprintOf(first)]);

  await writeFile(TLS_KEY, second.key);
  gateway.running.pass(readEvery);
  await expect.poll(() => said).toContain("the certificate was replaced");
  expect(await served(ports)).toEqual([fingerprintOf(second), fingerprintOf(second)]);
  expect(await answers(kept)).toBe(true);
});
