import { execFileSync } from "node:child_process";
import {
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { cleanFileName, fileNameFault, freeFileName } from "../../src/platform/file-name.ts";
import { CdpSession } from "../../workers/cdp/cdp-session.ts";
import { DownloadStore } from "../../workers/files/download-store.ts";
import { SessionFiles } from "../../workers/files/session-files.ts";
import {
  artifactsDirectory,
  filesDirectory,
  makeSlotDirectories,
  type SlotDirectories,
} from "../../workers/isolation/slot-block.ts";
import { EventFeed } from "../../workers/pages/event-feed.ts";

/** A uid of no slot. */
const uid = 199_999;

let slot: SlotDirectories;
let files: SessionFiles;

beforeEach(() => {
  const parent = mkdtempSync(join(tmpdir(), "downloaded-"));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  slot = { directory: join(parent, "slot"), storage: join(parent, "storage"), uid };
  makeSlotDirectories(slot);
  files = new SessionFiles(slot);
});

/** Files that an attacker in control of the browser may create in place of a download. */
const planted: Readonly<Record<string, (path: string, secret: string) => void>> = {
  "a link": (path, secret) => symlinkSync(secret, path),
  "a link to a directory": (path, secret) => symlinkSync(dirname(secret), path),
  "a second name of a file of ours": (path, secret) => linkSync(secret, path),
  "a directory": (path) => mkdirSync(path),
  "a pipe without a writer": (path) => execFileSync("mkfifo", [path]),
};

test.each(Object.entries(planted))("%s in place of a download is not stored, and is not removed", (_, plant) => {
  const secret = join(slot.directory, "..", "secret");
  writeFileSync(secret, "secret", { mode: 0o600 });
  const path = join(artifactsDirectory(slot.storage), "guid");
  plant(path, secret);
  if (lstatSync(path).ino !== lstatSync(secret).ino) lchownSync(path, uid, uid);
  const before = lstatSync(path);
  expect(files.take(path, { fileName: "x.txt", guid: "1" })).toBeUndefined();
  expect(files.all).toEqual([]);
  expect(readdirSync(filesDirectory(slot.storage))).toEqual([]);
  expect(lstatSync(path)).toMatchObject({ ino: before.ino, uid: before.uid, mode: before.mode });
  expect([readFileSync(secret, "utf8"), lstatSync(secret).mode & 0o777]).toEqual(["secret", 0o600]);
});

test("a download whose GUID is a path is ignored", async () => {
  const sent: string[] = [];
  const browser = new CdpSession(async (method) => void sent.push(method));
  const shelf = new DownloadStore({
    browser,
    directory: artifactsDirectory(slot.storage),
    files,
    feed: new EventFeed(() => undefined),
    holder: () => undefined,
    onChanged: () => undefined,
  });
  await shelf.start();
  const outside = join(slot.storage, "outside");
  writeFileSync(outside, "outside");
  const progress = { receivedBytes: 7, totalBytes: 7, state: "completed" };
  browser.emit("Browser.downloadWillBegin", { guid: "../outside", suggestedFilename: "x" });
  browser.emit("Browser.downloadProgress", { guid: "../outside", ...progress });
  expect(shelf.downloads).toEqual([]);
  expect(readFileSync(outside, "utf8")).toBe("outside");
  expect(files.all).toEqual([]);
  expect(sent).toEqual(["Browser.setDownloadBehavior"]);
});

test("download names of pages become valid file names", () => {
  const names = {
    "": "download",
    "..": "download",
    "../a/b": ".._a_b",
    "a\u0000\\b": "a__b",
    "\ud800.txt": "\ufffd.txt",
    ["x".repeat(300)]: "x".repeat(255),
    [`${"x".repeat(300)}.tar`]: `${"x".repeat(251)}.tar`,
    [`${"ü".repeat(200)}.txt`]: `${"ü".repeat(125)}.txt`,
    [`a.${"x".repeat(300)}`]: `a.${"x".repeat(253)}`,
  };
  for (const [name, clean] of Object.entries(names)) {
    expect(cleanFileName(name)).toBe(clean);
    expect(fileNameFault(clean), clean).toBeUndefined();
  }
});

test("a duplicate name receives the number 2 before its extension", () => {
  const names = {
    "a.txt": "a (2).txt",
    ".hidden": ".hidden (2)",
    x: "x (2)",
    [`${"x".repeat(251)}.txt`]: `${"x".repeat(247)} (2).txt`,
  };
  for (const [name, free] of Object.entries(names)) {
    const taken = new Set([name]);
    taken.add(freeFileName(name, (other) => taken.has(other)));
    expect(freeFileName(name, (other) => taken.has(other))).toBe(free);
  }
});
