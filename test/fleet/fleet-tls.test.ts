import { createHash } from "node:crypto";
import { copyFileSync, readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { ChannelCredentials, Client } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createChannels } from "../../src/fleet/channels.ts";
import { createFleetServer } from "../../src/fleet/fleet-server.ts";
import type { WorkerRegistry } from "../../src/fleet/worker-registry.ts";
import {
  CommandSchema,
  ControlService,
  ExportSpansResponseSchema,
  HeartbeatRequestSchema,
  HeartbeatResponseSchema,
  RegisterResponseSchema,
  ReportResponseSchema,
  StoreLogsResponseSchema,
  WorkerService,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SessionStateSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { FleetCertificates, type FleetTlsFiles } from "../../src/platform/grpc/fleet-certificates.ts";
import { fleetClientCredentials, tlsNameOptions } from "../../src/platform/grpc/fleet-tls.ts";
import { callUnary } from "../../src/platform/grpc/grpc-codec.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import type { SessionTable } from "../../workers/session/session-table.ts";
import { WorkerServer } from "../../workers/worker-server.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { silentLog } from "../support/database.ts";

let ours: CertificateAuthority;
let others: CertificateAuthority;
let gatewayTls: FleetTlsFiles;
let workerTls: FleetTlsFiles;
let foreignTls: FleetTlsFiles;

beforeAll(() => {
  ours = new CertificateAuthority();
  others = new CertificateAuthority();
  gatewayTls = ours.issue("gateway.test");
  workerTls = ours.issue("worker.test");
  // Trusts the gateway's authority; its own certificate is of an untrusted authority.
  foreignTls = { ...others.issue("worker.test"), ca: gatewayTls.ca };
});
afterAll(() => {
  ours[Symbol.dispose]();
  others[Symbol.dispose]();
});

const registry: WorkerRegistry = {
  register: async () => create(RegisterResponseSchema),
  heartbeat: async () => create(HeartbeatResponseSchema),
  report: async () => create(ReportResponseSchema),
  storeLogs: async () => create(StoreLogsResponseSchema),
  exportSpans: async () => create(ExportSpansResponseSchema),
  heartbeats: 0,
};

async function startGateway(tls?: FleetTlsFiles): Promise<number> {
  const server = createFleetServer({ listen: "127.0.0.1:0", tls, registry, log: silentLog });
  await server.start();
  onTestFinished(() => server.stop());
  return server.port;
}

/** Sends a heartbeat as a worker does. Returns "accepted" or the gRPC status code. */
async function heartbeat(port: number, tls: FleetTlsFiles | undefined, name?: string): Promise<unknown> {
  const client = new Client(
    `127.0.0.1:${port}`,
    fleetClientCredentials(tls, silentLog),
    name ? tlsNameOptions(name) : {},
  );
  onTestFinished(() => client.close());
  const request = create(HeartbeatRequestSchema);
  const sent = callUnary(client, ControlService.method.heartbeat, request, { timeoutMs: 10_000 });
  return sent.then(
    () => "accepted",
    (error) => error.code,
  );
}

const unavailable = 14;

test("a server and a client use replaced files without a restart, and keep the open connection", async () => {
  using renewing = new CertificateAuthority();
  using renewed = new CertificateAuthority();
  const [serverTls, clientTls] = [renewing.issue("server.test"), renewing.issue("client.test")];
  const server = createFleetServer({ listen: "127.0.0.1:0", tls: serverTls, registry, log: silentLog });
  await server.start();
  const { port } = server;
  const client = new Client(`127.0.0.1:${port}`, fleetClientCredentials(clientTls, silentLog));
  onTestFinished(() => client.close());
  const call = () =>
    callUnary(client, ControlService.method.heartbeat, create(HeartbeatRequestSchema), { timeoutMs: 10_000 });
  await call();
  const next = [renewed.issue("server.test"), renewed.issue("client.test")];
  for (const [index, to] of [serverTls, clientTls].entries())
    for (const file of ["cert", "key", "ca"] as const) copyFileSync(next[index]?.[file] ?? "", to[file]);
  // A new client reads the new files at once.
  await expect.poll(() => heartbeat(port, { ...clientTls }), { timeout: 45_000 }).toBe("accepted");
  await call();
  // The first client connects again, to a server that accepts only the new certificate.
  await server.stop();
  const listen = `127.0.0.1:${port}`;
  const restarted = createFleetServer({ listen, tls: { ...serverTls }, registry, log: silentLog });
  await restarted.start();
  onTestFinished(() => restarted.stop());
  const outcome = () => call().then(() => "accepted", String);
  await expect.poll(outcome, { timeout: 45_000 }).toBe("accepted");
}, 150_000);

test("files replaced while no connection uses them are read before the next connections", async () => {
  using renewing = new CertificateAuthority();
  using renewed = new CertificateAuthority();
  const tls = renewing.issue("client.test");
  const certificates = new FleetCertificates(tls, silentLog);
  const next = renewed.issue("client.test");
  for (const file of ["cert", "key", "ca"] as const) copyFileSync(next[file], tls[file]);
  const received: (Buffer | undefined)[] = [];
  const listener: Parameters<typeof certificates.addCaCertificateListener>[0] = (update) =>
    void received.push(update?.caCertificate);
  certificates.addCaCertificateListener(listener);
  onTestFinished(() => certificates.removeCaCertificateListener(listener));
  await expect.poll(() => received.at(-1), { timeout: 5_000 }).toEqual(readFileSync(next.ca));
});

describe("a gateway with certificates", () => {
  test("accepts a worker of the same authority by address and by name", async () => {
    const port = await startGateway(gatewayTls);
    expect(await heartbeat(port, workerTls)).toBe("accepted");
    expect(await heartbeat(port, workerTls, "gateway.test")).toBe("accepted");
  });

  test("rejects a worker without a certificate, with a foreign certificate, or in clear text", async () => {
    const port = await startGateway(gatewayTls);
    const { ca } = workerTls;
    const bare = new Client(`127.0.0.1:${port}`, ChannelCredentials.createSsl(readFileSync(ca)));
    onTestFinished(() => bare.close());
    const request = create(HeartbeatRequestSchema);
    const sent = callUnary(bare, ControlService.method.heartbeat, request, { timeoutMs: 10_000 });
    await expect(sent).rejects.toMatchObject({ code: unavailable });
    expect(await heartbeat(port, foreignTls)).toBe(unavailable);
    expect(await heartbeat(port, undefined)).toBe(unavailable);
  });

  test("is rejected by workers if its certificate belongs to another host", async () => {
    const strange = { ...others.issue("gateway.test"), ca: gatewayTls.ca };
    expect(await heartbeat(await startGateway(strange), workerTls)).toBe(unavailable);
    expect(await heartbeat(await startGateway(gatewayTls), workerTls, "elsewhere.test")).toBe(unavailable);
  });
});

describe("a worker with certificates", () => {
  const secretHash = createHash("sha256").update("its secret").digest("hex");

  async function startWorker(): Promise<string> {
    const session = { state: async () => create(SessionStateSchema, { url: "https://example.com/" }) };
    // Cast: the part of a session table that the command needs.
    const sessions = { find: () => session } as unknown as SessionTable;
    const slots = new SlotPool({ size: 1, executables: {}, log: silentLog });
    const server = new WorkerServer({ sessions, slots, log: silentLog, secretHash: () => secretHash });
    const port = await server.listen("127.0.0.1:0", workerTls);
    onTestFinished(() => server.stop());
    return `127.0.0.1:${port}`;
  }

  /** Sends a command as a gateway does. */
  async function command(address: string, tls: FleetTlsFiles | undefined, hash = secretHash): Promise<unknown> {
    const channels = createChannels(tls, silentLog);
    onTestFinished(() => channels.close());
    const { client, metadata } = channels.to({ id: "wrk_1", address, secretHash: Buffer.from(hash, "hex") });
    const request = create(CommandSchema);
    const sent = callUnary(client, WorkerService.method.getState, request, { metadata, timeoutMs: 10_000 });
    return sent.then(
      ({ url }) => url,
      (error) => error.code,
    );
  }

  test("obeys a gateway of the same authority that knows its secret", async () => {
    const address = await startWorker();
    expect(await command(address, gatewayTls)).toBe("https://example.com/");
    expect(await command(address, gatewayTls, "00".repeat(32))).toBe(unavailable);
  });

  test("rejects a gateway without a certificate or with a foreign one", async () => {
    const address = await startWorker();
    expect(await command(address, undefined)).toBe(unavailable);
    expect(await command(address, foreignTls)).toBe(unavailable);
  });
});
