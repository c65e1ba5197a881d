import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Server } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import {
  ControlService,
  ExportSpansResponseSchema,
  type HeartbeatRequest,
  HeartbeatResponseSchema,
  Isolation,
  type RegisterRequest,
  RegisterResponseSchema,
  ReportResponseSchema,
  StoreLogsResponseSchema,
  type WorkerEvent,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import { SessionEndedReason } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { fail } from "../../src/platform/errors.ts";
import { addGrpcService, listenGrpc } from "../../src/platform/grpc/fleet-grpc-server.ts";
import { failureToStatus } from "../../src/platform/grpc/grpc-failure.ts";
import { type Placement, Reports } from "../../workers/base/reports.ts";
import { ControlCaller } from "../../workers/fleet/control-caller.ts";
import { FleetLink } from "../../workers/fleet/fleet-link.ts";
import { IdentityFile } from "../../workers/fleet/identity.ts";
import { ReportSender } from "../../workers/fleet/report-sender.ts";
import { ProfileStore } from "../../workers/profiles/profile-store.ts";
import type { SessionTable } from "../../workers/session/session-table.ts";
import { silentLog } from "../support/database.ts";

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** Gateway that speaks the real protocol and is controlled by the test. */
class TestControl {
  readonly registrations: RegisterRequest[] = [];
  readonly heartbeats: HeartbeatRequest[] = [];
  readonly events: WorkerEvent[] = [];
  unwanted: Placement[] = [];
  settledProfiles: Placement[] = [];
  refusal: Error | undefined;
  /** Number of received reports, and the milliseconds that each takes to process. */
  reports = 0;
  reportTakes = 0;
  #server = new Server();

  async start(address: string, leaseMs = 60_000): Promise<string> {
    this.#server = new Server();
    const check = () => {
      if (this.refusal) throw this.refusal;
    };
    addGrpcService(
      this.#server,
      ControlService,
      {
        register: async (_call, request) => {
          this.registrations.push(request);
          check();
          const workerSecret = request.workerId ? "" : "secret-1";
          return create(RegisterResponseSchema, { workerId: "wrk_1", workerSecret, incarnation: 7n, leaseMs });
        },
        heartbeat: async (_call, request) => {
          this.heartbeats.push(request);
          check();
          return create(HeartbeatResponseSchema, { unwanted: this.unwanted, settledProfiles: this.settledProfiles });
        },
        report: async (_call, { events }) => {
          this.reports += 1;
          check();
          await sleep(this.reportTakes);
          this.events.push(...events);
          return create(ReportResponseSchema);
        },
        storeLogs: async () => create(StoreLogsResponseSchema),
        exportSpans: async () => create(ExportSpansResponseSchema),
      },
      { admit: () => undefined, toStatus: failureToStatus },
    );
    const port = await listenGrpc(this.#server, address);
    return address.startsWith("unix:") ? address : `127.0.0.1:${port}`;
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}

/** Part of a session table that the link uses. */
class TestSessions {
  held: Placement[] = [];
  isDraining = false;
  readonly endings: SessionEndedReason[] = [];
  destroy({ sessionId }: Placement): void {
    this.held = this.held.filter((held) => held.sessionId !== sessionId);
  }
  async endAll(reason: SessionEndedReason): Promise<void> {
    this.endings.push(reason);
    this.held = [];
  }
}

async function setUp(gateways: readonly string[], profiles?: ProfileStore) {
  const directory = await mkdtemp(join(tmpdir(), "fleet-link-"));
  const identityFile = new IdentityFile(directory, 0);
  await identityFile.claim(process.pid);
  const sessions = new TestSessions();
  const reports = new Reports();
  const stopReasons: string[] = [];
  const make = () => {
    const link = new FleetLink({
      control: new ControlCaller(gateways, undefined, silentLog),
      token: "token-of-16-chars",
      identityFile,
      describe: () => ({
        address: "127.0.0.1:1",
        runtimes: ["headless-shell"],
        slots: 3,
        pool: "default",
        isolation: Isolation.FLAGS,
        unsandboxed: false,
      }),
      sessions: sessions as unknown as SessionTable,
      ...(profiles && { profiles }),
      log: silent,
      onStopRequired: (stopReason) => stopReasons.push(stopReason),
    });
    const sender = new ReportSender(reports, link);
    sender.start();
    onTestFinished(async () => {
      await sender.stop();
      await link.stop();
      await rm(directory, { recursive: true, force: true });
    });
    return { start: () => link.start(), stop: () => sender.stop().then(() => link.stop()) };
  };
  return { directory, sessions, reports, stopReasons, make };
}

test("registers, keeps its identity secret, and reconnects with it", async () => {
  const gateway = new TestControl();
  onTestFinished(() => gateway.stop());
  const { directory, make } = await setUp([await gateway.start("127.0.0.1:0")]);
  const first = make();
  await first.start();
  await expect.poll(() => gateway.heartbeats.length).toBeGreaterThan(0);
  const path = join(directory, "workers/0/identity.json");
  expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ workerId: "wrk_1", workerSecret: "secret-1" });
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(gateway.heartbeats[0]).toMatchObject({ incarnation: 7n, draining: false });
  await first.stop();
  await make().start();
  await expect.poll(() => gateway.registrations.length).toBe(2);
  expect(gateway.registrations[1]).toMatchObject({ workerId: "wrk_1", workerSecret: "secret-1" });
  expect(gateway.registrations[1]?.bootId).not.toBe(gateway.registrations[0]?.bootId);
});

test("keeps its identity while its token is refused", async () => {
  const gateway = new TestControl();
  onTestFinished(() => gateway.stop());
  const { make } = await setUp([await gateway.start("127.0.0.1:0")]);
  const first = make();
  await first.start();
  await expect.poll(() => gateway.heartbeats.length).toBeGreaterThan(0);
  await first.stop();
  gateway.refusal = fail(
    "forbidden",
    {},
    { detail: "worker_token does not match WORKER_TOKEN of the control process" },
  );
  await make().start();
  await expect.poll(() => gateway.registrations.length).toBeGreaterThan(2);
  expect(gateway.registrations.at(-1)).toMatchObject({ workerId: "wrk_1", workerSecret: "secret-1" });
});

test("reports events in order until acknowledged, also to the next control process on the same socket", async () => {
  const directory = await mkdtemp(join(tmpdir(), "fleet-socket-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const address = `unix:${join(directory, "fleet.sock")}`;
  const first = new TestControl();
  await first.start(address);
  const { reports, make } = await setUp([address]);
  const link = make();
  await link.start();
  await expect.poll(() => first.heartbeats.length).toBeGreaterThan(0);
  first.stop();
  const placement = { sessionId: "ses_1", placementEpoch: 1n };
  reports.append(placement, { case: "challengeGone", value: {} });
  reports.append(placement, { case: "ended", value: { reason: SessionEndedReason.IDLE, detail: "idle" } });
  const second = new TestControl();
  onTestFinished(() => second.stop());
  await second.start(address);
  await expect.poll(() => second.events.length).toBe(2);
  expect(second.events.map(({ sequence, event }) => [sequence, event.case])).toEqual([
    [1n, "challengeGone"],
    [2n, "ended"],
  ]);
});

test("loses no report when it stops while one is in flight", async () => {
  const gateway = new TestControl();
  onTestFinished(() => gateway.stop());
  const { reports, make } = await setUp([await gateway.start("127.0.0.1:0")]);
  const link = make();
  await link.start();
  await expect.poll(() => gateway.heartbeats.length).toBeGreaterThan(0);
  gateway.reportTakes = 100;
  // Two and a half batches.
  const sequences = Array.from({ length: 250 }, (_, index) => BigInt(index + 1));
  for (const _ of sequences)
    reports.append({ sessionId: "ses_1", placementEpoch: 1n }, { case: "challengeGone", value: {} });
  await expect.poll(() => gateway.reports).toBeGreaterThan(0);
  await link.stop();
  expect(gateway.events.map(({ sequence }) => sequence)).toEqual(sequences);
});

test("ends the sessions that a control process does not want", async () => {
  const gateway = new TestControl();
  onTestFinished(() => gateway.stop());
  gateway.unwanted = [{ sessionId: "ses_1", placementEpoch: 1n }];
  const { sessions, make } = await setUp([await gateway.start("127.0.0.1:0")]);
  sessions.held = [
    { sessionId: "ses_1", placementEpoch: 1n },
    { sessionId: "ses_2", placementEpoch: 1n },
  ];
  await make().start();
  await expect.poll(() => sessions.held.length).toBe(1);
  expect(sessions.held).toMatchObject([{ sessionId: "ses_2" }]);
});

test("sends heartbeats after a profile cannot be deleted", async () => {
  const gateway = new TestControl();
  onTestFinished(() => gateway.stop());
  const dataDir = await mkdtemp(join(tmpdir(), "fleet-profiles-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const profiles = new ProfileStore(dataDir, 0);
  await profiles.start();
  // A directory cannot be deleted like a file.
  await mkdir(join(profiles.directory, "ses_1.1.json"));
  gateway.settledProfiles = [{ sessionId: "ses_1", placementEpoch: 1n }];
  const { make } = await setUp([await gateway.start("127.0.0.1:0")], profiles);
  await make().start();
  await expect.poll(() => gateway.heartbeats.length, { timeout: 10_000 }).toBeGreaterThan(1);
});

test("ends all sessions when no heartbeat was accepted for a lease", async () => {
  const gateway = new TestControl();
  const { sessions, stopReasons, make } = await setUp([await gateway.start("127.0.0.1:0", 500)]);
  sessions.held = [{ sessionId: "ses_1", placementEpoch: 1n }];
  await make().start();
  await expect.poll(() => gateway.heartbeats.length).toBeGreaterThan(0);
  gateway.stop();
  await expect.poll(() => stopReasons.length).toBeGreaterThan(0);
  expect(sessions.endings).toEqual([SessionEndedReason.WORKER_LOST]);
});

test("switches to another gateway when one does not answer", async () => {
  const gateway = new TestControl();
  onTestFinished(() => gateway.stop());
  const { make } = await setUp(["127.0.0.1:9", await gateway.start("127.0.0.1:0")]);
  await make().start();
  await expect.poll(() => gateway.heartbeats.length).toBeGreaterThan(0);
});

test("switches to another gateway when its own dies, as the same worker with its sessions", async () => {
  const [first, second] = [new TestControl(), new TestControl()];
  onTestFinished(() => second.stop());
  const { sessions, reports, stopReasons, make } = await setUp([
    await first.start("127.0.0.1:0", 8_000),
    await second.start("127.0.0.1:0", 8_000),
  ]);
  const placement = { sessionId: "ses_1", placementEpoch: 1n };
  sessions.held = [placement];
  await make().start();
  await expect.poll(() => first.heartbeats.length).toBeGreaterThan(0);
  first.stop();
  reports.append(placement, { case: "challengeGone", value: {} });
  await expect.poll(() => second.events.length).toBe(1);
  await expect.poll(() => second.heartbeats.length).toBeGreaterThan(0);
  expect(second.registrations).toEqual([]);
  expect(second.heartbeats[0]).toMatchObject({ incarnation: 7n, sessions: [placement] });
  expect([...stopReasons, ...sessions.endings]).toEqual([]);
});

test("keeps its lease when its control process dies and most addresses do not answer", async () => {
  const silent = Array.from({ length: 3 }, () => createServer());
  for (const server of silent) {
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
  }
  const controls = [new TestControl(), new TestControl()];
  onTestFinished(() => controls.forEach((control) => void control.stop()));
  const [first, second] = await Promise.all(controls.map((control) => control.start("127.0.0.1:0", 4_000)));
  const [before, ...between] = silent.map((server) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
  const { stopReasons, make } = await setUp([before, first, ...between, second].map(String));
  await make().start();
  const called = () => controls.filter(({ heartbeats }) => heartbeats.length > 0);
  await expect.poll(() => called().length).toBe(1);
  called()[0]?.stop();
  await expect.poll(() => called().length).toBe(2);
  expect(stopReasons).toEqual([]);
});

test("reports that another process runs under its name", async () => {
  const gateway = new TestControl();
  onTestFinished(() => gateway.stop());
  gateway.refusal = fail("conflict", {}, { detail: "no" });
  const { stopReasons, make } = await setUp([await gateway.start("127.0.0.1:0")]);
  await make().start();
  await expect.poll(() => stopReasons).toContain("superseded");
});
