import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type LiveDownload, LiveDownloadSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { type Download, DownloadSchema, SessionDownloadEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { cleanFileName } from "../../src/platform/file-name.ts";
import type { CdpSession, WireEvents } from "../cdp/cdp-session.ts";
import type { EventFeed } from "../pages/event-feed.ts";
import { type Coming, fileBounds } from "./file-bounds.ts";
import type { SessionFiles } from "./session-files.ts";

/** How many downloads `state` shows. */
const kept = 10;

/** Milliseconds that the browser may take to tell of a download after its navigation. */
const nameMs = 500;

/** How often running downloads are measured: at 1 GiB/s that lets 200 MiB more through. */
const measureMs = 200;

/** What browsers name downloads; anything else would be a path that a browser in a stranger's hands has chosen. */
const guidPattern = /^[\w-]{1,64}$/;

export interface DownloadShelfOptions {
  /** The session of the whole browser. */
  readonly browser: CdpSession;
  /** Where the browser puts what it downloads, while it does. */
  readonly directory: string;
  /** Where downloads are when they are complete. */
  readonly files: SessionFiles;
  readonly feed: EventFeed;
  /** The person who steers. */
  holder(): string | undefined;
  /** Hears that there is another download, or one has come to its end. */
  onChanged(): void;
}

/** A download that has begun while a person steered. */
interface Offer {
  readonly id: string;
  readonly holder: string;
  readonly download: Download;
}

/** Has what pages download come in a directory of the slot, within bounds, and gives it to the session's files. */
export class DownloadShelf {
  readonly #options: DownloadShelfOptions;
  readonly #shown: Download[] = [];
  readonly #offers: Offer[] = [];
  #offered = 0;
  /** The last ones. */
  readonly #begins: { readonly at: number; readonly frameId: string; readonly fileName: string }[] = [];
  #nextBegin = Promise.withResolvers<void>();
  readonly #running = new Map<string, Download>();
  readonly #coming: Coming;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: DownloadShelfOptions) {
    this.#options = options;
    this.#coming = options.files.expect();
  }

  /** Resolves with the name of the first download that a frame has begun since a time; undefined where none comes. */
  async nameSince(since: number, frameId: string): Promise<string | undefined> {
    let isOver = false;
    const find = async (): Promise<string | undefined> => {
      while (!isOver) {
        const found = this.#begins.find((begin) => begin.at >= since && begin.frameId === frameId);
        if (found) return found.fileName;
        await this.#nextBegin.promise;
      }
      return undefined;
    };
    const name = await within(find(), nameMs, undefined);
    isOver = true;
    return name;
  }

  /** The last 10, the newest last. */
  get downloads(): readonly Download[] {
    return this.#shown;
  }

  /** What has begun while a person steered, of the last 10 that have begun while anybody did. */
  offeredTo(person: string | undefined): LiveDownload[] {
    return this.#offers.flatMap(({ id, holder, download: { fileName, bytes, status } }) =>
      holder === person ? [create(LiveDownloadSchema, { id, fileName, bytes, status })] : [],
    );
  }

  /** Takes whatever pages download from now on. */
  async start(): Promise<void> {
    const { browser, directory: downloadPath } = this.#options;
    browser.on("Browser.downloadWillBegin", (download) => this.#begin(download));
    browser.on("Browser.downloadProgress", (progress) => this.#follow(progress));
    await browser.send("Browser.setDownloadBehavior", {
      behavior: "allowAndName",
      downloadPath,
      eventsEnabled: true,
    });
  }

  /** Measures no more. */
  close(): void {
    clearInterval(this.#timer);
  }

  #begin({ guid, suggestedFilename, frameId }: WireEvents["Browser.downloadWillBegin"]): void {
    if (!guidPattern.test(guid)) return;
    const download = create(DownloadSchema, { fileName: cleanFileName(suggestedFilename), status: "running" });
    this.#begins.push({ at: Date.now(), frameId, fileName: download.fileName });
    if (this.#begins.length > kept) this.#begins.shift();
    this.#nextBegin.resolve();
    this.#nextBegin = Promise.withResolvers();
    this.#shown.push(download);
    if (this.#shown.length > kept) this.#shown.shift();
    this.#running.set(guid, download);
    this.#offer(download);
    if (this.#options.files.hasRoom) this.#timer ??= setInterval(() => void this.#measure(), measureMs);
    else this.#refuse(guid, download);
  }

  #offer(download: Download): void {
    const holder = this.#options.holder();
    if (holder === undefined) return;
    this.#offered += 1;
    this.#offers.push({ id: `dow_${this.#offered}`, holder, download });
    if (this.#offers.length > kept) this.#offers.shift();
    this.#options.onChanged();
  }

  #follow({ guid, state, receivedBytes, totalBytes }: WireEvents["Browser.downloadProgress"]): void {
    const download = this.#running.get(guid);
    if (!download) return;
    download.bytes = BigInt(receivedBytes);
    if (Math.max(receivedBytes, totalBytes) > fileBounds.fileBytes) this.#refuse(guid, download);
    else if (state === "completed") this.#finish(guid, download);
    else if (state === "canceled") this.#end(guid, download, "failed");
  }

  #finish(guid: string, download: Download): void {
    const file = this.#take(guid, download);
    if (!file) {
      this.#refuse(guid, download);
      return;
    }
    download.fileName = file.name;
    download.bytes = file.bytes;
    this.#end(guid, download, "finished");
  }

  #take(guid: string, { fileName }: Download): ReturnType<SessionFiles["take"]> {
    try {
      return this.#options.files.take(join(this.#options.directory, guid), { fileName, guid });
    } catch {
      // It is not there: the slot is being cleared, or whoever has the browser has taken it away.
      return undefined;
    }
  }

  #refuse(guid: string, download: Download): void {
    const { browser, directory } = this.#options;
    this.#end(guid, download, "refused");
    const cancelled = browser.send("Browser.cancelDownload", { guid }).catch(() => undefined);
    void cancelled.then(() => rm(join(directory, guid), { force: true })).catch(() => undefined);
  }

  #end(guid: string, download: Download, status: "finished" | "failed" | "refused"): void {
    this.#running.delete(guid);
    if (this.#running.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      this.#coming.bytes = 0;
    }
    download.status = status;
    const { fileName, bytes } = download;
    this.#options.feed.publish(SessionDownloadEventSchema, { fileName, bytes, status });
    this.#options.onChanged();
  }

  /** What a browser says of its downloads is the page's word; how much there is on disk is not. */
  async #measure(): Promise<void> {
    const { directory, files } = this.#options;
    const names = await readdir(directory).catch(() => []);
    const sizes = await Promise.all(names.map((name) => sizeOf(join(directory, name))));
    if (this.#running.size === 0) return;
    this.#coming.bytes = sizes.reduce((sum, size) => sum + size, 0);
    if (files.isOver) for (const [guid, download] of this.#running) this.#refuse(guid, download);
  }
}

/** A link is not followed: what lies in the slot's directory is the page's word. */
async function sizeOf(path: string): Promise<number> {
  const entry = await lstat(path).catch(() => undefined);
  return entry?.isFile() ? entry.size : 0;
}
