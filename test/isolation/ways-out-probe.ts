// Runs in its own network. A page tries every channel to every forbidden address, for the browser and guard given as
// parameters. Prints the arrivals as JSON.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type BrowserContext, chromium } from "playwright";
import { ProxySchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { BrowserRuntime } from "../../src/platform/browsers/browser-paths.ts";
import type { Isolation } from "../../src/platform/isolation.ts";
import { launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { playwrightOf } from "../support/playwright-of.ts";
import { lentPlaywright } from "../support/proxied-playwright.ts";
import { ProxyStandIn } from "../support/proxy-stand-in.ts";
import { attempt } from "./attempts.ts";
import { type Arrivals, listenEverywhere } from "./listener.ts";
import { elsewhere, type ProbeResult, wayNames, ways } from "./way-out.ts";
import { executables, forbiddenAddresses, keepingLog } from "./world.ts";

/** Secure origin, which WebTransport requires. Its responses are mocked without network access. */
const securePage = "https://attacker.example/";
const plainPage = "http://attacker.example/";

/** Turns off Chromium's own checks of private addresses, because the isolation must hold without them. */
const eagerFlags = [
  "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebRTC,LocalNetworkAccessChecksWebSockets,LocalNetworkAccessChecksWebTransport",
];

/** Duration of an attempt behind a guard. Without a guard each attempt arrives within 2 s on two busy cores. */
const guardedMs = 6_000;

/** Maximum duration of an attempt without a guard, which ends at its first arrival. */
const unguardedMs = 60_000;

async function tryEverything(context: BrowserContext, limit: number): Promise<void> {
  await context.route("**://attacker.example/**", (route) =>
    route.fulfill({ contentType: "text/html", body: "<p>hello" }),
  );
  const open = async (url: string) => {
    const page = await context.newPage();
    await page.goto(url);
    return page;
  };
  const [secure, plain] = [await open(securePage), await open(plainPage)];
  const tries = wayNames.flatMap((way) => forbiddenAddresses.map((address) => ({ way, address })));
  await Promise.all(
    tries.map(async ({ way, address }) => {
      // A navigation ends the attempts of its page.
      if (way === "navigation") await attempt(await open(plainPage), way, address, limit);
      else await attempt(way === "webtransport" ? secure : plain, way, address, limit);
    }),
  );
}

async function probeUnguarded(runtime: BrowserRuntime, arrivals: Arrivals): Promise<ProbeResult> {
  const directory = mkdtempSync(join(tmpdir(), "ways-out-"));
  const executablePath = executables[runtime];
  if (executablePath === undefined) throw new Error(`no ${runtime} is installed`);
  const args = [...eagerFlags, ...(runtime === "chromium" ? ["--headless=new"] : [])];
  const env = { PATH: process.env.PATH, HOME: directory, TMPDIR: directory };
  const browser = await chromium.launch({ executablePath, args, env });
  try {
    await Promise.race([tryEverything(await browser.newContext(), unguardedMs), arrivals.complete]);
  } finally {
    await browser.close();
    rmSync(directory, { recursive: true, force: true });
  }
  return { arrivals: [...arrivals.seen].sort(), refusals: [], asked: { before: [], after: [] }, reachedAllowed: true };
}

const guards = ["namespace", "flags", "proxy", "client"] as const;

/** `proxy` and `client` also use a namespace: with the session's proxy, and controlled by a customer's CDP client. */
type Guard = (typeof guards)[number];

async function probeGuarded(runtime: BrowserRuntime, guard: Guard, arrivals: Arrivals): Promise<ProbeResult> {
  const log = keepingLog();
  const isolation: Isolation = guard === "flags" ? "flags" : "namespace";
  // Tunnels that the browser opens itself lead to a closed port.
  const proxy = new ProxyStandIn(1);
  const server = `127.0.0.1:${await proxy.start()}`;
  const forced = isolation === "flags" ? { isolation } : {};
  const pool = new SlotPool({
    size: 1,
    executables,
    log,
    ...(guard === "proxy" ? { allow: [server] } : {}),
    ...forced,
  });
  await pool.start();
  try {
    if (pool.isolation !== isolation) throw new Error(`${isolation} is unavailable here: ${log.complaints.join()}`);
    const slot = pool.acquire();
    if (!slot) throw new Error("a new pool has no free slot");
    const use = { check: "check.example:443", onChange: () => undefined };
    if (guard === "proxy") slot.relay.useUpstream(create(ProxySchema, { server: `http://${server}` }), use);
    const attach = guard === "client" ? lentPlaywright : playwrightOf;
    const context = await attach(
      await launchBrowser(slot, { runtime, extraFlags: eagerFlags, signal: AbortSignal.timeout(30_000) }),
    );
    await tryEverything(context, guardedMs);
    const refusals = slot.relay.refusals.map(({ host, port }) => `${host}:${port}`);
    const seen = [...arrivals.seen].sort();
    const before = [...proxy.asked];
    slot.relay.allow.add(`10.77.0.1:${ways.navigation.port}`);
    const page = await context.newPage();
    const answer = await page.goto(`http://10.77.0.1:${ways.navigation.port}/`);
    if (guard === "proxy") await page.goto(elsewhere);
    const asked = { before, after: proxy.asked.slice(before.length) };
    return { arrivals: seen, refusals, asked, reachedAllowed: answer?.status() === 200 };
  } finally {
    proxy.stop();
    await pool.stop();
  }
}

const [runtime, guard] = process.argv.slice(2);
if (runtime !== "headless-shell" && runtime !== "chromium") throw new Error(`no such runtime: ${runtime}`);
const arrivals = await listenEverywhere(forbiddenAddresses);
const known = guards.find((each) => each === guard);
const result = known ? await probeGuarded(runtime, known, arrivals) : await probeUnguarded(runtime, arrivals);
process.stdout.write(JSON.stringify(result), () => process.exit());
