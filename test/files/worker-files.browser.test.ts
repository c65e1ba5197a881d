import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { findBrowsers, realDisk } from "../../src/platform/browsers/browser-paths.ts";
import { fileBounds } from "../../workers/files/file-bounds.ts";
import { launchBrowser } from "../../workers/isolation/browser-process.ts";
import { SlotPool } from "../../workers/isolation/slot-pool.ts";
import { FixtureSite } from "../support/fixture-site.ts";
import { runtimes } from "../support/runtimes.ts";
import { mountSmallDisk, type SmallDisk } from "../support/small-disk.ts";
import { type DrivenSession, WorkerUnderTest } from "../support/worker-under-test.ts";

const kibibyte = 1024;

let disk: SmallDisk;
let site: FixtureSite;
let worker: WorkerUnderTest;
/** Session of the tests that do not depend on its earlier downloads. */
let shared: DrivenSession;

beforeAll(async () => {
  disk = mountSmallDisk("200m");
  site = await new FixtureSite().start();
  worker = await WorkerUnderTest.start([site.host], { storage: disk.directory });
  shared = await worker.open();
});

afterAll(async () => {
  await shared?.destroy();
  await worker?.stop();
  await site?.stop();
  disk?.[Symbol.dispose]();
});

beforeEach(() => {
  const before = { ...fileBounds };
  onTestFinished(() => void Object.assign(fileBounds, before));
});

async function open(runtime = "headless-shell"): Promise<DrivenSession> {
  const session = await worker.open({ runtime });
  onTestFinished(async () => {
    await session.destroy();
    // The slot is released after the response, and the next test needs its space.
    await expect.poll(() => worker.sessions.held.length, { timeout: 10_000 }).toBe(1);
  });
  return session;
}

/** Returns the shared session without files. */
async function share(): Promise<DrivenSession> {
  for (const name of await shared.fileNames()) await shared.deleteFile(name);
  return shared;
}

/** Finds a session's slot by a file with a unique name. */
async function slotOf(session: DrivenSession): Promise<string> {
  const marker = session.placement.sessionId;
  await session.putFile(marker, Buffer.from("marker"));
  const [slot] = readdirSync(disk.directory).filter((name) =>
    namesIn(join(disk.directory, name, "files")).includes(marker),
  );
  await session.deleteFile(marker);
  return join(disk.directory, slot ?? "");
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

async function downloads(session: DrivenSession): Promise<{ fileName: string; status: string }[]> {
  const { downloads } = await session.state();
  return downloads.map(({ fileName, status }) => ({ fileName, status }));
}

const bytes = (kibibytes: number) => Buffer.alloc(kibibytes * kibibyte, 1);

test("refuses files above the total size, and accepts more after a delete", async () => {
  Object.assign(fileBounds, { fileBytes: 700 * kibibyte, sessionBytes: 1_500 * kibibyte });
  const session = await share();
  await session.putFile("a", bytes(700));
  await session.putFile("b", bytes(700));
  const refused = {
    slug: "conflict",
    detail: expect.stringMatching(/^the session's files would exceed .* together: delete files first$/),
  };
  await expect(session.putFile("c", bytes(101))).rejects.toMatchObject(refused);
  // The file that is being replaced is still stored.
  await expect(session.putFile("a", bytes(101))).rejects.toMatchObject(refused);
  await session.deleteFile("b");
  expect(await session.putFile("a", bytes(699))).toMatchObject({ created: false, file: { bytes: 715_776n } });
  expect(await session.fileNames()).toEqual(["a"]);
});

test("refuses more files than a session may have, including downloads", async () => {
  fileBounds.files = 2;
  const session = await open();
  await session.putFile("a", bytes(1));
  await session.putFile("b", bytes(1));
  await expect(session.putFile("c", bytes(1))).rejects.toMatchObject({
    slug: "conflict",
    detail: "the session has 2 files, the maximum: delete files first",
  });
  expect(await session.putFile("b", bytes(2))).toMatchObject({ created: false });
  const { httpStatus, download } = await session.navigate({ url: site.url("/download") });
  expect([httpStatus, download?.fileName]).toEqual([undefined, "report.csv"]);
  await expect.poll(() => downloads(session)).toEqual([{ fileName: "report.csv", status: "refused" }]);
  await session.deleteFile("a");
  await session.navigate({ url: site.url("/download") });
  await expect.poll(() => session.fileNames()).toEqual(["report.csv", "b"]);
});

test("leaves nothing of an upload whose stream ends before its last message", async () => {
  const session = await share();
  await expect(session.putFile("half", bytes(10), false)).rejects.toMatchObject({ slug: "bad-request" });
  expect(await session.fileNames()).toEqual([]);
  const slot = await slotOf(session);
  expect(namesIn(slot).filter((name) => name.startsWith("incoming-"))).toEqual([]);
});

test("fails an upload on a full disk and keeps the earlier file", async () => {
  const session = await share();
  await session.putFile("kept", bytes(10));
  const slot = await slotOf(session);
  const free = disk.fill();
  await expect(session.putFile("kept", bytes(500))).rejects.toMatchObject({
    slug: "driver-error",
    detail: "the disk of the browser's machine is full",
  });
  expect(namesIn(slot).filter((name) => name.startsWith("incoming-"))).toEqual([]);
  free();
  expect(await session.putFile("kept", bytes(500))).toMatchObject({ created: false });
});

describe.each(runtimes)("a download of %s", (runtime) => {
  test("is refused if it exceeds the total size together with the other files", async () => {
    fileBounds.sessionBytes = 1_000 * kibibyte;
    const session = await open(runtime);
    await session.putFile("a", bytes(600));
    const url = site.url(`/sized-download?bytes=${500 * kibibyte}`);
    expect((await session.navigate({ url })).download?.fileName).toBe("sized.bin");
    await expect.poll(() => downloads(session)).toMatchObject([{ status: "refused" }]);
    await session.deleteFile("a");
    await session.navigate({ url });
    await expect.poll(() => session.fileNames()).toEqual(["sized.bin"]);
  });

  test("fails if the disk has no room", async () => {
    const session = await open(runtime);
    await session.navigate({ url: site.url("/plain.html") });
    const free = disk.fill();
    onTestFinished(free);
    await session.navigate({ url: site.url(`/sized-download?bytes=${500 * kibibyte}`) });
    await expect.poll(() => downloads(session), { timeout: 10_000 }).toMatchObject([{ status: "failed" }]);
    expect(await session.fileNames()).toEqual([]);
  });
});

test("downloads into its slot when full Chromium has no download directory", async () => {
  const executables = findBrowsers({
    env: process.env,
    dataDirectory: "/",
    platform: process.platform,
    disk: realDisk,
  });
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const slots = new SlotPool({ size: 1, executables, log, allow: [site.host] });
  onTestFinished(() => slots.stop());
  await slots.start();
  const slot = slots.acquire();
  if (!slot) throw new Error("there is no slot");
  const { browserSession, targets } = await launchBrowser(slot, {
    runtime: "chromium",
    signal: AbortSignal.timeout(30_000),
  });
  const { targetInfos } = await browserSession.send("Target.getTargets");
  const page = targetInfos.find(({ type }) => type === "page");
  await browserSession.send("Browser.setDownloadBehavior", { behavior: "default" });
  // A navigation that becomes a download has no response.
  void targets.sessionOf(page?.targetId ?? "")?.send("Page.navigate", { url: site.url("/download") });
  const artifacts = join(slot.storage, "artifacts");
  await expect.poll(() => namesIn(artifacts), { timeout: 10_000 }).toEqual(["report.csv"]);
});

test("allows the browser's user to read the session's files but not to change them", async () => {
  const session = await share();
  await session.putFile("mine", Buffer.from("mine"));
  await session.navigate({ url: site.url("/download") });
  await expect.poll(() => session.fileNames()).toEqual(["report.csv", "mine"]);
  const directory = join(await slotOf(session), "files");
  const user = statSync(directory).gid;
  const identity = [`--reuid=${user}`, `--regid=${user}`, "--clear-groups"];
  const asUser = (script: string) =>
    spawnSync("setpriv", [...identity, "sh", "-c", `cd ${directory} && ${script}`], { encoding: "utf8" });
  expect(asUser("cat mine report.csv").stdout).toBe("minea,b\n1,2\n");
  for (const script of ["ln -s /etc/passwd x", "rm -f mine", "mv mine x", "echo x > mine", "echo x > report.csv"]) {
    expect(asUser(script).stderr, script).toMatch(/denied|not permitted/i);
  }
});
