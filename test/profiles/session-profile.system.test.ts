import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { packProfile } from "../../workers/profiles/profile-files.ts";
import { ProfileShelf } from "../../workers/profiles/profile-shelf.ts";
import { SessionProfile } from "../../workers/profiles/session-profile.ts";
import { executables, keepingLog } from "../isolation/world.ts";
import { descendantsOf } from "../support/process-list.ts";

const browserMajor = 150;

const log = keepingLog();
const slots = new SlotPool({ size: 1, executables, log });
let directory: string;
let shelf: ProfileShelf;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "profile-"));
  shelf = new ProfileShelf(directory, 0);
  await shelf.start();
  await slots.start();
});

afterAll(async () => {
  await slots.stop();
  await rm(directory, { recursive: true });
  expect(log.complaints).toEqual([]);
});

async function takeSlot() {
  const slot = await vi.waitUntil(() => slots.acquire(), { timeout: 20_000 });
  onTestFinished(() => slot.release());
  return slot;
}

/** Makes the profile of a session to come, in a slot of its own, whose store was written by some version of the browser. */
async function makeProfile(sessionId: string, { writtenBy }: { writtenBy: number | undefined }) {
  const slot = await takeSlot();
  const profile = { sessionId, placementEpoch: 1n, profileId: "prof_1", version: 1n, engine: "chromium" };
  if (writtenBy !== undefined) {
    const source = join(directory, sessionId);
    await mkdir(join(source, "Default/IndexedDB"), { recursive: true });
    await writeFile(join(source, "Default/IndexedDB/large"), Buffer.alloc(20 * 2 ** 20, sessionId));
    const manifest = { format: 1, engine: "chromium", browserMajor: writtenBy, cookies: [] } as const;
    await packProfile({ path: source, uid: undefined }, manifest, shelf.incomingOf(profile));
  }
  return new SessionProfile({ shelf, slot, profile, browserMajor, log });
}

test("a store that a newer browser has written is refused, and leaves the worker as it was", async () => {
  const profile = await makeProfile("ses_newer", { writtenBy: browserMajor + 1 });
  await expect(profile.restore(AbortSignal.timeout(10_000))).rejects.toMatchObject({ slug: "driver-not-integrated" });
  await profile.discard();
});

test("a store that is not there is an error of its session alone", async () => {
  const profile = await makeProfile("ses_lost", { writtenBy: undefined });
  await expect(profile.restore(AbortSignal.timeout(10_000))).rejects.toMatchObject({ code: "ENOENT" });
  await profile.discard();
});

test("a profile may be given up while it is unpacked", async () => {
  const profile = await makeProfile("ses_given_up", { writtenBy: browserMajor });
  const launch = new AbortController();
  const restored = profile.restore(launch.signal);
  launch.abort();
  await expect(restored).rejects.toThrow();
  await profile.discard();
});

test.each(["headless-shell", "chromium"] as const)(
  "a profile is closed when %s has ended by itself, which writes files after its last word",
  async (runtime) => {
    const slot = await takeSlot();
    const profile = {
      sessionId: `ses_${runtime}`,
      placementEpoch: 1n,
      profileId: "prof_1",
      version: 0n,
      engine: "chromium",
    };
    const ofSession = new SessionProfile({ shelf, slot, profile, browserMajor, log });
    const browser = await launchBrowser(slot, { runtime, keepsFiles: true, signal: AbortSignal.timeout(30_000) });
    await ofSession.attach(browser);
    await ofSession.close(browser);
    const commands = [...descendantsOf(process.pid)].map(({ command }) => command);
    expect(commands.filter((command) => command.includes("--remote-debugging-pipe"))).toEqual([]);
    await browser.kill();
    await ofSession.discard();
  },
  60_000,
);
