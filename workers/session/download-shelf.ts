import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { Download as BrowserDownload, Page } from "playwright-core";
import { type Download, DownloadSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import type { EventFeed } from "./event-feed.ts";

/** How many files and bytes a session may download. */
const MAX_FILES = 20;
const MAX_BYTES = 100 * 1024 * 1024;

/** How many downloads `state` shows. */
const KEPT = 10;

/** How often running downloads are measured: at 1 GiB/s that lets 200 MiB more through. */
const MEASURE_MS = 200;

const NAME_LENGTH = 255;

interface Entry {
  readonly shown: Download;
  readonly download: BrowserDownload;
}

/** Keeps what pages download apart, in the slot's directory, and within bounds. */
export class DownloadShelf {
  readonly #directory: string;
  readonly #feed: EventFeed;
  readonly #shown: Download[] = [];
  readonly #running = new Set<Entry>();
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(directory: string, feed: EventFeed) {
    this.#directory = directory;
    this.#feed = feed;
  }

  /** The last 10, the newest last. */
  get downloads(): readonly Download[] {
    return this.#shown;
  }

  /** Takes whatever a page downloads. */
  attend(page: Page): void {
    page.on("download", (download) => void this.#take(download));
  }

  /** Measures no more. */
  close(): void {
    clearInterval(this.#timer);
  }

  async #take(download: BrowserDownload): Promise<void> {
    const fileName = download.suggestedFilename().slice(0, NAME_LENGTH).toWellFormed();
    const shown = create(DownloadSchema, { fileName, status: "running" });
    this.#shown.push(shown);
    if (this.#shown.length > KEPT) this.#shown.shift();
    this.#count += 1;
    const entry = { shown, download };
    if (this.#count > MAX_FILES) return this.#refuse(entry);
    this.#running.add(entry);
    this.#timer ??= setInterval(() => void this.#measure(), MEASURE_MS);
    await this.#finish(entry);
  }

  async #finish(entry: Entry): Promise<void> {
    const { download, shown } = entry;
    // The browser may go away meanwhile, and the file with it.
    const path = await download.path().catch(() => undefined);
    this.#running.delete(entry);
    if (this.#running.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (path !== undefined) shown.bytes = BigInt(await sizeOf(path));
    if (shown.status === "running") shown.status = path === undefined ? "failed" : "finished";
    this.#publish(shown);
  }

  /** Names of files are the browser's choice: one running download is what is on disk besides the finished ones. */
  async #measure(): Promise<void> {
    const names = await readdir(this.#directory).catch(() => []);
    const sizes = await Promise.all(names.map((name) => sizeOf(join(this.#directory, name))));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const [only, another] = this.#running;
    if (only && !another) only.shown.bytes = BigInt(Math.max(0, total - this.#finishedBytes()));
    if (total > MAX_BYTES) for (const entry of this.#running) void this.#refuse(entry);
  }

  #finishedBytes(): number {
    return this.#shown.reduce((sum, { status, bytes }) => sum + (status === "finished" ? Number(bytes) : 0), 0);
  }

  async #refuse({ download, shown }: Entry): Promise<void> {
    shown.status = "refused";
    await download.cancel().catch(() => undefined);
    await download.delete().catch(() => undefined);
    this.#publish(shown);
  }

  #publish({ fileName, bytes, status }: Download): void {
    this.#feed.publish("session.download", { file_name: fileName, bytes: Number(bytes), status });
  }
}

/** A link is not followed: what lies in the slot's directory is the page's word. */
async function sizeOf(path: string): Promise<number> {
  const entry = await lstat(path).catch(() => undefined);
  return entry?.isFile() ? entry.size : 0;
}
