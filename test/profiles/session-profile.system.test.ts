import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { packProfile } from "../../workers/profiles/profile-files.ts";
import { ProfileStore } from "../../workers/profiles/profile-store.ts";
import { SessionProfile } from "../../workers/profiles/session-profile.ts";
import { executables, keepingLog } from "../isolation/world.ts";
import { descendantsOf } from "../support/process-list.ts";

const browserMajor = 150;

const log = keepingLog();
const slots = new SlotPool({ size: 1, executables, log });
let directory: string;
let profileStore: ProfileStore;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "profile-"));
  profileStore = new ProfileStore(directory, 0);
  await profileStore.start();
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

/** Prepares a session's profile in its own slot, with a store that a version of the browser has written. */
async function makeProfile(sessionId: string, { writtenBy }: { writtenBy: number | undefined }) {
  const slot = await takeSlot();
  const profile = { sessionId, placementEpoch: 1n, profileId: "prof_1", version: 1n, engine: "chromium" };
  if (writtenBy !== undefined) {
    const source = join(directory, sessionId);
    await mkdir(join(source, "Default/IndexedDB"), { recursive: true });
    await writeFile(join(source, "Default/IndexedDB/large"), Buffer.alloc(20 * 2 ** 20, sessionId));
    const manifest = { format: 1, engine: "chromium", browserMajor: writtenBy, cookies: [] } as const;
    await packProfile({ path: source, uid: undefined }, manifest, profileStore.incomingOf(profile));
  }
  return new SessionProfile({ profileStore, slot, profile, browserMajor, log });
}

test("a store of a newer browser is rejected without effect on the worker", async () => {
  const profile = await makeProfile("ses_newer", { writtenBy: browserMajor + 1 });
  await expect(profile.restore(AbortSignal.timeout(10_000))).rejects.toMatchObject({ slug: "driver-not-integrated" });
  await profile.discard();
});

test("a missing store is an error of its session only", async () => {
  const profile = await makeProfile("ses_lost", { writtenBy: undefined });
  await expect(profile.restore(AbortSignal.timeout(10_000))).rejects.toMatchObject({ code: "ENOENT" });
  await profile.discard();
});

test("a profile can be abandoned while it is unpacked", async () => {
  const profile = await makeProfile("ses_given_up", { writtenBy: browserMajor });
  const launch = new AbortController();
  const restored = profile.restore(launch.signal);
  launch.abort();
  await expect(restored).rejects.toThrow();
  await profile.discard();
});

test.each(["headless-shell", "chromium"] as const)(
  "a profile is saved when %s has exited, including files written after its last message",
  async (runtime) => {
    const slot = await takeSlot();
    const profile = {
      sessionId: `ses_${runtime}`,
      placementEpoch: 1n,
      profileId: "prof_1",
      version: 0n,
      engine: "chromium",
    };
    const ofSession = new SessionProfile({ profileStore, slot, profile, browserMajor, log });
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
