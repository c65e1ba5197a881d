import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type Download, DownloadSchema, SessionDownloadEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { CdpSession, WireEvents } from "../wire/cdp-session.ts";
import type { EventFeed } from "./event-feed.ts";

/** How many files and bytes a session may download. */
const maxFiles = 20;
const maxBytes = 100 * 1024 * 1024;

/** How many downloads `state` shows. */
const kept = 10;

/** How often running downloads are measured: at 1 GiB/s that lets 200 MiB more through. */
const measureMs = 200;

const nameLength = 255;

interface Entry {
  readonly shown: Download;
  /** What the browser calls it, and its file. */
  readonly guid: string;
}

/** Keeps what pages download apart, in the slot's directory, and within bounds. */
export class DownloadShelf {
  readonly #browser: CdpSession;
  readonly #directory: string;
  readonly #feed: EventFeed;
  readonly #shown: Download[] = [];
  readonly #running = new Map<string, Entry>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(browser: CdpSession, directory: string, feed: EventFeed) {
    this.#browser = browser;
    this.#directory = directory;
    this.#feed = feed;
  }

  /** The last 10, the newest last. */
  get downloads(): readonly Download[] {
    return this.#shown;
  }

  /** Takes whatever pages download from now on. */
  async start(): Promise<void> {
    this.#browser.on("Browser.downloadWillBegin", (download) => this.#take(download));
    this.#browser.on("Browser.downloadProgress", ({ guid, state }) => {
      const entry = state === "inProgress" ? undefined : this.#running.get(guid);
      if (entry) void this.#finish(entry, state === "completed");
    });
    const downloadPath = this.#directory;
    await this.#browser.send("Browser.setDownloadBehavior", {
      behavior: "allowAndName",
      downloadPath,
      eventsEnabled: true,
    });
  }

  /** Measures no more. */
  close(): void {
    clearInterval(this.#timer);
  }

  #take({ guid, suggestedFilename }: WireEvents["Browser.downloadWillBegin"]): void {
    const fileName = suggestedFilename.slice(0, nameLength).toWellFormed();
    const shown = create(DownloadSchema, { fileName, status: "running" });
    this.#shown.push(shown);
    if (this.#shown.length > kept) this.#shown.shift();
    this.#count += 1;
    const entry = { shown, guid };
    if (this.#count > maxFiles) return void this.#refuse(entry);
    this.#running.set(guid, entry);
    this.#timer ??= setInterval(() => void this.#measure(), measureMs);
  }

  async #finish({ guid, shown }: Entry, isWhole: boolean): Promise<void> {
    this.#running.delete(guid);
    if (this.#running.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (isWhole) shown.bytes = BigInt(await sizeOf(join(this.#directory, guid)));
    if (shown.status === "running") shown.status = isWhole ? "finished" : "failed";
    this.#publish(shown);
  }

  /** Names of files are the browser's choice: one running download is what is on disk besides the finished ones. */
  async #measure(): Promise<void> {
    const names = await readdir(this.#directory).catch(() => []);
    const sizes = await Promise.all(names.map((name) => sizeOf(join(this.#directory, name))));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const [only, another] = this.#running.values();
    if (only && !another) only.shown.bytes = BigInt(Math.max(0, total - this.#finishedBytes()));
    if (total > maxBytes) for (const entry of this.#running.values()) void this.#refuse(entry);
  }

  #finishedBytes(): number {
    return this.#shown.reduce((sum, { status, bytes }) => sum + (status === "finished" ? Number(bytes) : 0), 0);
  }

  async #refuse({ guid, shown }: Entry): Promise<void> {
    shown.status = "refused";
    await this.#browser.send("Browser.cancelDownload", { guid }).catch(() => undefined);
    await rm(join(this.#directory, guid), { force: true }).catch(() => undefined);
    this.#publish(shown);
  }

  #publish({ fileName, bytes, status }: Download): void {
    this.#feed.publish(SessionDownloadEventSchema, { fileName, bytes, status });
  }
}

/** A link is not followed: what lies in the slot's directory is the page's word. */
async function sizeOf(path: string): Promise<number> {
  const entry = await lstat(path).catch(() => undefined);
  return entry?.isFile() ? entry.size : 0;
}
