import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type LiveDownload, LiveDownloadSchema } from "../../src/gen/pilothouse/v1/live_pb.ts";
import { type Download, DownloadSchema, SessionDownloadEventSchema } from "../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { cleanFileName } from "../../src/platform/file-name.ts";
import type { CdpEvents, CdpSession } from "../cdp/cdp-session.ts";
import type { EventFeed } from "../pages/event-feed.ts";
import { fileBounds, type PendingWrite } from "./file-bounds.ts";
import type { SessionFiles } from "./session-files.ts";

/** Maximum length of each list of downloads, such as the list in the session's state. */
const kept = 10;

/** Milliseconds to wait for the download event after the navigation that caused the download. */
const nameMs = 500;

/** Milliseconds between measurements of running downloads. At 1 GiB/s a download exceeds its bound by up to 200 MiB. */
const measureMs = 200;

/** Format of download ids. Any other value could be a path chosen by a compromised browser. */
const guidPattern = /^[\w-]{1,64}$/;

export interface DownloadStoreOptions {
  /** CDP session of the browser target. */
  readonly browser: CdpSession;
  /** Directory to which the browser writes running downloads. */
  readonly directory: string;
  readonly files: SessionFiles;
  readonly feed: EventFeed;
  /** Returns the client id of the person who holds control, or undefined. */
  holder(): string | undefined;
  /** Called when a download starts under a person's control, and when any download ends. */
  onChanged(): void;
}

/** A download that started while a person had control. */
interface Offer {
  readonly id: string;
  readonly holder: string;
  readonly download: Download;
}

/** Receives downloads in the isolation slot, enforces bounds and adds completed files to the session's files. */
export class DownloadStore {
  readonly #options: DownloadStoreOptions;
  readonly #shown: Download[] = [];
  readonly #offers: Offer[] = [];
  #offered = 0;
  /** The most recent download starts. */
  readonly #begins: { readonly at: number; readonly frameId: string; readonly fileName: string }[] = [];
  #nextBegin = Promise.withResolvers<void>();
  readonly #running = new Map<string, Download>();
  readonly #pendingWrite: PendingWrite;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: DownloadStoreOptions) {
    this.#options = options;
    this.#pendingWrite = options.files.beginWrite();
  }

  /**
   * Resolves with the name of the first download that a frame started since `since` (milliseconds since the epoch), or
   * with undefined after 500 ms.
   */
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

  /** The last 10 downloads, newest last. */
  get downloads(): readonly Download[] {
    return this.#shown;
  }

  /**
   * Returns the downloads that started while this person held control, among the last 10 that started while any person
   * did.
   */
  offeredTo(person: string | undefined): LiveDownload[] {
    return this.#offers.flatMap(({ id, holder, download: { fileName, bytes, status } }) =>
      holder === person ? [create(LiveDownloadSchema, { id, fileName, bytes, status })] : [],
    );
  }

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

  /** Stops the measurements. */
  close(): void {
    clearInterval(this.#timer);
  }

  #begin({ guid, suggestedFilename, frameId }: CdpEvents["Browser.downloadWillBegin"]): void {
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

  #follow({ guid, state, receivedBytes, totalBytes }: CdpEvents["Browser.downloadProgress"]): void {
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
      // The file is missing: the slot is being removed, or a compromised browser deleted the file.
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
      this.#pendingWrite.bytes = 0;
    }
    download.status = status;
    const { fileName, bytes } = download;
    this.#options.feed.publish(SessionDownloadEventSchema, { fileName, bytes, status });
    this.#options.onChanged();
  }

  /**
   * Measures the running downloads on disk, because sizes that the browser reports are not trusted. If the session's
   * limit is exceeded, refuses all running downloads.
   */
  async #measure(): Promise<void> {
    const { directory, files } = this.#options;
    const names = await readdir(directory).catch(() => []);
    const sizes = await Promise.all(names.map((name) => sizeOf(join(directory, name))));
    if (this.#running.size === 0) return;
    this.#pendingWrite.bytes = sizes.reduce((sum, size) => sum + size, 0);
    if (files.isOver) for (const [guid, download] of this.#running) this.#refuse(guid, download);
  }
}

/** Returns the size of a regular file, otherwise 0. Follows no links, because the browser controls the directory. */
async function sizeOf(path: string): Promise<number> {
  const entry = await lstat(path).catch(() => undefined);
  return entry?.isFile() ? entry.size : 0;
}
