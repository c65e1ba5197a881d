import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { Agent, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import {
  CheckProxyCommandSchema,
  CommandContextSchema,
  CommandSchema,
  HeartbeatResponseSchema,
  Isolation,
  LaunchRequestSchema,
  ProxyCdpRequestSchema,
  RegisterResponseSchema,
  WorkerService,
} from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  CdpResponseSchema,
  CreateSessionRequestSchema,
  OnChallenge,
  ProxySchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { tiers } from "../../src/limits/tiers.ts";
import { sleep } from "../../src/platform/bounded-wait.ts";
import { fleetMetadata } from "../../src/platform/grpc/fleet-metadata.ts";
import { callUnary } from "../../src/platform/grpc/grpc-codec.ts";
import { planSession } from "../../src/sessions/launch/session-plan.ts";
import type { ConnectionUser } from "../../workers/cdp/connection-user.ts";
import { CdpClient } from "../../workers/cdp-proxy/cdp-client.ts";
import { forwardRequest } from "../../workers/egress/forward.ts";
import { ProxiedRoute } from "../../workers/egress/proxied-route.ts";
import { checkProxy } from "../../workers/egress/proxy-check.ts";
import { admitThroughProxy, type EgressGuard } from "../../workers/egress/resolver.ts";
import { connectTarget } from "../../workers/egress/tunnel.ts";
import { Upstream } from "../../workers/egress/upstream.ts";
import { findControlProcesses } from "../../workers/fleet/control-addresses.ts";
import { FleetLink, type FleetLinkOptions, type WorkerStopReason } from "../../workers/fleet/fleet-link.ts";
import { type BrowserProcess, launchBrowser } from "../../workers/isolation/browser-process.ts";
import { HiddenPage } from "../../workers/isolation/hidden-page.ts";
import type { Slot } from "../../workers/isolation/slot.ts";
import { SlotHost, type SlotHostOptions } from "../../workers/isolation/slot-host.ts";
import { CapturePage } from "../../workers/live/capture-page.ts";
import { LiveKitSignal, type SignalListener } from "../../workers/live/livekit-signal.ts";
import { Publication, type PublicationParts } from "../../workers/live/publication.ts";
import { plainDevice } from "../../workers/pages/device/device.ts";
import { SessionBrowser } from "../../workers/pool/session-browser.ts";
import { WarmBrowser } from "../../workers/pool/warm-browser.ts";
import { ProfileStore } from "../../workers/profiles/profile-store.ts";
import { SessionProfile, type SessionProfileOptions } from "../../workers/profiles/session-profile.ts";
import { Session } from "../../workers/session/session.ts";
import { SessionTable, type SessionTableOptions } from "../../workers/session/session-table.ts";
import { WorkerServer } from "../../workers/worker-server.ts";
import { atCall, type Begin, expectToTake, fakeTime, restoreTime } from "../support/faked-time.ts";
import { never, scriptPage, scriptSession } from "../support/scripted-page.ts";

// Needs its own process, because modules that others may have loaded are replaced.
vi.mock("node:timers/promises", () => import("../support/faked-time.ts"));
vi.mock("node:fs/promises", { spy: true });
vi.mock("../../workers/isolation/browser-process.ts", { spy: true });

/** Replaces the worker that the entry point starts. */
const startWorker = vi.hoisted(() => vi.fn());
vi.mock("../../workers/worker.ts", () => ({ startWorker }));

beforeEach(fakeTime);
afterEach(restoreTime);

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const { signal } = new AbortController();
const target = { host: "site.test", port: 80 };
const placement = { sessionId: "ses_1", placementEpoch: 1n };

const slot = { storage: "/nonexistent" } as Slot;

/** A browser that never answers. */
function hungBrowser(): BrowserProcess {
  const browserSession = scriptSession();
  const process = {
    browserSession,
    connection: { root: browserSession },
    targets: {},
    exited: never(),
    ended: never(),
  };
  return process as unknown as BrowserProcess;
}

/** A guard whose names are never resolved, and whose rules return `allows`. */
const guard = (allows: boolean) =>
  ({ rules: { allowsTarget: () => allows, allowsAddress: () => allows }, resolve: never }) as unknown as EgressGuard;

/**
 * Starts a link to a gateway that registers the worker, and answers each heartbeat after `answer`. `replaced` replaces
 * options of the link.
 */
async function startLink(answer: (timeoutMs: number) => Promise<void>, replaced: object = {}): Promise<FleetLink> {
  const call = async ({ localName }: { localName: string }, _request: object, { timeoutMs }: { timeoutMs: number }) => {
    if (localName === "register")
      return create(RegisterResponseSchema, { workerId: "wrk_1", workerSecret: "a", incarnation: 1n, leaseMs: 60_000 });
    await answer(timeoutMs);
    return create(HeartbeatResponseSchema);
  };
  const link = new FleetLink({
    control: { call, close: async () => undefined },
    token: "token-of-16-chars",
    identityFile: { read: async () => undefined, write: async () => undefined },
    describe: () => ({ address: "127.0.0.1:1", runtimes: [], slots: 1, isolation: Isolation.FLAGS }),
    sessions: { held: [], isDraining: false, launchFails: false, endAll: async () => undefined },
    log: silent,
    onStopRequired: () => undefined,
    ...replaced,
  } as unknown as FleetLinkOptions);
  onTestFinished(() => void link.stop());
  await link.start();
  return link;
}

/** Creates a session that ends with its CDP clients. A client stays until its requests end. */
function sessionOfClients(onEnded: () => void): Session {
  const browser = new SessionBrowser(slot, hungBrowser(), plainDevice());
  vi.spyOn(browser.cdpProxy, "proxyCdp").mockImplementation(async function* (requests) {
    for await (const _ of requests);
    yield create(CdpResponseSchema, { closed: "lost" });
  });
  const long = 3_600_000;
  const options = { ...placement, id: "ses_1", browser, lifetimeMs: long, idleTimeoutMs: long, endsWithClients: true };
  return new Session({ ...options, showRemedy: false, onChallenge: OnChallenge.REPORT, onEvent: never, onEnded });
}

/** Connects a CDP client. Its connection breaks when the promise settles. */
async function connectClient(session: Session, breaks: Promise<unknown>): Promise<void> {
  async function* requests() {
    yield create(ProxyCdpRequestSchema, {});
    await breaks;
  }
  for await (const _ of session.proxyCdp(requests(), signal));
}

/** Publishes a page. The capture page answers as scripted, and `onOver` is called when it is closed. */
function publishPage(captured: Readonly<Record<string, object>>, onOver: () => void): void {
  const capture = {
    call: async (name: string) => captured[name] ?? never(),
    ended: never(),
    [Symbol.asyncDispose]: async () => onOver(),
  };
  vi.spyOn(CapturePage, "open").mockResolvedValue(capture as unknown as CapturePage);
  vi.spyOn(LiveKitSignal, "connect").mockImplementation(async (_url, _token, listener) => {
    const signalling = { announce: () => listener.onPublished(), offer: () => undefined, ended: never() };
    return { ...signalling, [Symbol.dispose]: () => undefined } as unknown as LiveKitSignal;
  });
  const tabOf = (mainFrameId: string) => {
    const cssVisualViewport = { clientWidth: 9, clientHeight: 9, scale: 1 };
    return { session: scriptSession({ "Page.getLayoutMetrics": () => ({ cssVisualViewport }) }), mainFrameId };
  };
  const pages = { active: { tab: tabOf("1") }, shown: { tab: tabOf("2"), cdp: scriptSession() } };
  const publication = new Publication({ pages, server: {} } as unknown as PublicationParts);
  onTestFinished(() => publication.close());
  publication.setEnabled(true);
}

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "timeouts-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

/** Waits by file and name of their duration. */
const rows: Readonly<Record<string, Begin>> = {
  "egress/forward.ts silenceMs": (onSilence) => {
    const request = Object.assign(new PassThrough(), { url: "http://site.test/", headers: {}, rawHeaders: [] });
    const agent = Object.assign(new Agent(), { createConnection: () => new PassThrough() });
    const exit = { agent, connect: never, onSilence };
    const onFailure = () => undefined;
    const response = new PassThrough() as unknown as ServerResponse;
    forwardRequest({ request: request as unknown as IncomingMessage, response, target, exit, onFailure });
  },
  "egress/proxied-route.ts tunnelMs": async () => {
    const upstream = new Upstream(create(ProxySchema, { server: "http://proxy.test:3128" }), guard(true));
    const way = new ProxiedRoute({ upstream, guard: guard(true), check: target, onChange: () => undefined });
    const exit = await way.open(target);
    if (exit !== "refused") await exit.connect(signal);
  },
  "egress/proxy-check.ts probeMs": () => {
    const proxy = { server: "http://proxy.test:3128" };
    return checkProxy(guard(true), create(CheckProxyCommandSchema, { proxy, target: "site.test:443" }), signal);
  },
  "egress/resolver.ts proxiedLookupMs": () => admitThroughProxy(target, guard(false), async () => true),
  "egress/tunnel.ts connectMs": () => connectTarget(target, () => undefined, signal),
  "fleet/control-addresses.ts lookupMs": () => findControlProcesses(["control.test:8083"], never),
  "fleet/fleet-link.ts leaseMs": (onOver) => {
    void startLink(never, { control: { call: never, close: async () => undefined }, onStopRequired: onOver });
  },
  "fleet/fleet-link.ts times.heartbeat": (onOver) => {
    const onHeartbeat = atCall(2, onOver);
    void startLink(async () => onHeartbeat());
  },
  "fleet/fleet-link.ts times.call": (onOver) => {
    const onHeartbeat = atCall(2, onOver);
    void startLink(async (timeoutMs) => {
      onHeartbeat();
      await sleep(timeoutMs);
      throw new Error("the gateway has not answered");
    });
  },
  "fleet/fleet-link.ts times.handOver": async () => {
    const link = await startLink(async () => undefined);
    await vi.waitUntil(() => link.isRegistered);
    await link.handOver({ pending: async () => [placement] } as unknown as ProfileStore);
  },
  "cdp-proxy/cdp-client.ts pauseMs": (onOver) => {
    const user = { send: onOver } as unknown as ConnectionUser;
    new CdpClient(user, { isHeld: () => false } as ConstructorParameters<typeof CdpClient>[1]);
    const members = Buffer.from('"params":{"sessionId":"S","waitingForDebugger":true}');
    user.onevent?.({ method: "Target.attachedToTarget" } as never, members, undefined);
  },
  "isolation/hidden-page.ts openWithin": () => {
    const page = new HiddenPage("about:blank");
    void page.open(never);
    return page.opening;
  },
  "live/publication.ts publishWithin": (onOver) => publishPage({}, onOver),
  "live/publication.ts showWithin": (onOver) => publishPage({ offer: { sdp: "", trackId: "1" } }, onOver),
  "pool/session-browser.ts clientDialogMs": (onOver) => {
    const { tab, session } = scriptPage({ "Page.handleJavaScriptDialog": onOver });
    const { openDialogs, cdpProxy } = new SessionBrowser(slot, hungBrowser(), plainDevice());
    vi.spyOn(cdpProxy, "handlesDialogs").mockReturnValue(true);
    openDialogs.watchTab(tab, "page_1");
    session.emit("Page.javascriptDialogOpening", { type: "alert", message: "" });
  },
  "pool/warm-browser.ts proofMs": async () => {
    vi.mocked(launchBrowser).mockResolvedValueOnce(hungBrowser());
    vi.spyOn(SessionBrowser.prototype, "start").mockResolvedValue();
    const device = plainDevice();
    const launch = { runtime: "headless-shell", device, extraFlags: [], signal, profile: undefined } as const;
    await (await WarmBrowser.launch(slot, launch)).adopt(device);
  },
  "profiles/session-profile.ts closeMs": async () => {
    const profile = new SessionProfile({
      profileStore: { expect: () => undefined },
    } as unknown as SessionProfileOptions);
    await profile.close(hungBrowser());
  },
  "session/session.ts withoutClientsMs": (onOver) => {
    void connectClient(sessionOfClients(onOver), Promise.resolve());
  },
  "session/session-table.ts launchMs": () => {
    const take = ({ signal }: { signal: AbortSignal }) => once(signal, "abort");
    const runtimes = new Map([["headless-shell", 150]]);
    const table = new SessionTable({ browsers: { take }, runtimes, log: silent } as unknown as SessionTableOptions);
    const plan = planSession(create(CreateSessionRequestSchema), tiers.get("enterprise")).browser;
    return table.create(create(CommandContextSchema, placement), create(LaunchRequestSchema, { plan }));
  },
};

test.each(Object.entries(rows))("%s bounds the wait for a missing answer", async (place, begin) => {
  await expectToTake(`workers/${place}`, begin);
});

test("a session that ends with its clients continues while a client is connected", async () => {
  const onEnded = vi.fn();
  const session = sessionOfClients(onEnded);
  const broken = Promise.withResolvers<void>();
  const first = connectClient(session, broken.promise);
  await vi.advanceTimersByTimeAsync(100_000);
  broken.resolve();
  await first;
  await vi.advanceTimersByTimeAsync(20_000);
  void connectClient(session, never());
  await vi.advanceTimersByTimeAsync(100_000);
  expect(onEnded).not.toHaveBeenCalled();
});

test("exits the process when its worker does not stop in time", async () => {
  vi.stubEnv("CONTROL", "unix:/nonexistent/fleet.sock");
  vi.stubEnv("WORKER_LISTEN", "unix:/nonexistent/worker.sock");
  vi.stubEnv("WORKER_TOKEN", "token-of-16-chars");
  vi.stubEnv("LOG_LEVEL", "error");
  onTestFinished(() => {
    vi.unstubAllEnvs();
    process.exitCode = undefined;
  });
  // Signals and errors of this process must not reach the worker's handlers.
  vi.spyOn(process, "on").mockReturnThis();
  startWorker.mockResolvedValue({ stop: never });
  await import("../../workers/main.ts");
  const [options]: { onStopRequired(stopReason: WorkerStopReason): void }[] = startWorker.mock.calls.flat();
  await expectToTake("workers/main.ts stopMs", (onOver) => {
    vi.spyOn(process, "exit").mockImplementation(onOver as () => never);
    options?.onStopRequired("superseded");
  });
});

test("aborts calls that do not end when the server stops", async () => {
  vi.useRealTimers();
  const launch = vi.fn(never);
  const sessions = { create: launch } as unknown as SessionTable;
  const server = new WorkerServer({ sessions, slots: { guard: guard(true) }, log: silent, secretHash: () => "hash" });
  const client = new Client(`127.0.0.1:${await server.listen("127.0.0.1:0")}`, credentials.createInsecure());
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  metadata.set(fleetMetadata.workerSecretHash, "hash");
  const command = create(CommandSchema, { context: placement });
  const cut = expect(callUnary(client, WorkerService.method.create, command, { metadata })).rejects.toThrow();
  await vi.waitUntil(() => launch.mock.calls.length > 0);
  vi.useFakeTimers();
  await expectToTake("workers/worker-server.ts stopMs", () => server.stop());
  await cut;
});

test("logs processes that outlive SIGKILL", async () => {
  const directory = await makeDirectory();
  const child = spawn("sleep", ["600"]);
  await once(child, "spawn");
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  onTestFinished(() => {
    kill.mockRestore();
    child.kill("SIGKILL");
  });
  const record = join(directory, "0.launch");
  await writeFile(record, readFileSync(`/proc/${child.pid}/stat`));
  const directoryOf = () => directory;
  const block = { uidOf: () => undefined, recordOf: () => record, directoryOf, storageOf: directoryOf };
  const complaints = vi.fn();
  const log = { ...silent, error: complaints };
  const place = new SlotHost(0, { block, isolation: "flags", sandbox: "off", log } as unknown as SlotHostOptions);
  await expectToTake("workers/isolation/slot-host.ts killMs", () => place.kill());
  expect(complaints.mock.calls[0]?.[0]).toEqual({ slot: 0, pids: [child.pid] });
});

test("removes a profile that is never claimed by a session", async () => {
  const shelf = new ProfileStore(await makeDirectory(), 0);
  await shelf.start();
  await shelf.put(placement, (async function* () {})());
  await expectToTake("workers/profiles/profile-store.ts incomingMs", (onOver) =>
    vi.mocked(rm).mockImplementationOnce(async () => onOver()),
  );
});

test("removes unfinished files older than a minute when the profile store starts", async () => {
  const shelf = new ProfileStore(await makeDirectory(), 0);
  await shelf.makeDirectory();
  const [old, young] = [shelf.incomingOf(placement), shelf.unfinishedOf(placement)];
  await Promise.all([writeFile(old, ""), writeFile(young, "")]);
  const now = Date.now() / 1_000;
  await Promise.all([utimes(old, now, now - 90), utimes(young, now, now - 30)]);
  await shelf.start();
  expect([existsSync(old), existsSync(young)]).toEqual([false, true]);
});

test("closes a browser that does not return its cookies", async () => {
  const record = join(await makeDirectory(), "0.launch");
  const profileStore = { expect: () => undefined, owner: { dataDir: "/nonexistent", index: 0 } };
  const profile = { ...placement, profileId: "prof_1", version: 0n, engine: "chromium" };
  const options = {
    profileStore,
    slot: { ready: Promise.resolve({ record }) },
    profile,
    browserMajor: 150,
    log: silent,
  };
  const ofSession = new SessionProfile(options as unknown as SessionProfileOptions);
  const closed = Promise.withResolvers<void>();
  const browserSession = scriptSession({ "Browser.close": () => closed.resolve() });
  const browser = { browserSession, ended: closed.promise } as unknown as BrowserProcess;
  await ofSession.attach(browser);
  await expectToTake("workers/profiles/session-profile.ts lastCookiesMs", () => ofSession.close(browser));
});

test("pings the media server", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  onTestFinished(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  using _signal = await LiveKitSignal.connect(`ws://127.0.0.1:${port}`, "token", {} as SignalListener);
  await expectToTake("workers/live/livekit-signal.ts pingEvery", (onPing) =>
    vi.spyOn(WebSocket.prototype, "send").mockImplementation(onPing),
  );
});

test("publishes a session for some seconds after its last viewer left", async () => {
  let lastTry = 0;
  const pages = {
    get active() {
      lastTry = performance.now();
      throw new Error("there is no page");
    },
  };
  const publication = new Publication({ pages } as unknown as PublicationParts);
  publication.setEnabled(true);
  publication.setEnabled(false);
  await expectToTake("workers/live/publication.ts lingerMs", (onOver) => {
    // A new token starts another attempt immediately.
    const learn = () => publication.setToken("token");
    setInterval(() => (performance.now() - lastTry > 1_000 ? onOver() : learn()), 500);
  });
});
