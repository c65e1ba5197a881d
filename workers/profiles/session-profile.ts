import { rm } from "node:fs/promises";
import { within } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { Log } from "../base/log.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { BrowserProcess } from "../isolation/browser-process.ts";
import type { Slot } from "../isolation/slot.ts";
import { profileDirectory, removeProfileRecord } from "../isolation/slot-block.ts";
import { type Cookie, readCookies, setCookies } from "./profile-cookies.ts";
import { unpackProfile } from "./profile-files.ts";
import { type ProfileRecord, writeRecord } from "./profile-record.ts";
import type { ProfileStore, UsedProfile } from "./profile-store.ts";
import { saveProfile } from "./save-profile.ts";

/** Milliseconds between cookie readings, in case the browser crashes. Equal to the browser's own flush interval. */
const cookiesMs = 10_000;

/** Maximum milliseconds for reading the last cookies, which takes 100 ms on a quiet machine. */
const lastCookiesMs = 1_000;
/** Maximum milliseconds to wait for the browser's exit. A hung browser still writes localStorage 5 s after a change. */
const closeMs = 6_000;

export interface SessionProfileOptions {
  readonly profileStore: ProfileStore;
  readonly slot: Slot;
  readonly profile: UsedProfile;
  readonly browserMajor: number;
  readonly log: Log;
}

/** Profile of one session. Restored into its slot before the launch and saved after the browser's end. */
export class SessionProfile {
  readonly #options: SessionProfileOptions;
  #cookies: readonly Cookie[] = [];
  #session: CdpSession | undefined;
  #isDiscarded = false;
  #timer: NodeJS.Timeout | undefined;
  #recording: Promise<void> = Promise.resolve();

  constructor(options: SessionProfileOptions) {
    this.#options = options;
    options.profileStore.expect(options.profile);
  }

  /**
   * Unpacks the uploaded profile into the slot before the launch. A profile of version 0 is empty and has no upload.
   * Throws `driver-not-integrated` if the profile needs a newer browser.
   */
  async restore(signal: AbortSignal): Promise<void> {
    const { profileStore, slot, profile, browserMajor } = this.#options;
    if (profile.version === 0n) return;
    await slot.ready;
    const source = profileStore.incomingOf(profile);
    const { cookies } = await unpackProfile(source, this.#directory, signal, (manifest) => {
      if (manifest.browserMajor <= browserMajor) return;
      const detail = `the profile needs browser version ${manifest.browserMajor} or newer, but this worker has ${browserMajor}`;
      throw fail("driver-not-integrated", {}, { detail });
    });
    this.#cookies = cookies;
    await rm(source, { force: true });
  }

  /** Sets the cookies in the launched browser and starts recording them. */
  async attach({ browserSession }: BrowserProcess): Promise<void> {
    this.#session = browserSession;
    if (this.#cookies.length > 0) await setCookies(browserSession, this.#cookies);
    if (this.#isDiscarded) return;
    this.#timer = setInterval(() => {
      this.#recording = this.#recordCookies(cookiesMs).catch((error: unknown) => {
        this.#options.log.warn({ err: error, session_id: this.#options.profile.sessionId }, "failed to record cookies");
      });
    }, cookiesMs);
    // The record is written only after a complete restore, so that no other worker saves an incomplete profile after a
    // crash.
    this.#recording = this.#write();
    await this.#recording;
  }

  /** Reads the cookies a last time and closes the browser, so that it flushes its data. Takes at most 7 s. */
  async close({ browserSession, ended }: BrowserProcess): Promise<void> {
    clearInterval(this.#timer);
    await this.#recordCookies(lastCookiesMs).catch(() => undefined);
    browserSession.send("Browser.close").catch(() => undefined);
    await within(ended, closeMs, undefined);
  }

  /** Packs the profile, and logs a failure. Call this after all browser processes have ended. */
  async save(): Promise<void> {
    const { profileStore, slot, log, profile } = this.#options;
    try {
      await this.#recording;
      await saveProfile(profileStore, this.#directory, this.#record, log);
    } catch (error) {
      log.error({ err: error, session_id: profile.sessionId }, "failed to store a profile; its changes are lost");
    }
    await this.#forget(slot);
  }

  /** Discards the profile of a session that did not start. */
  async discard(): Promise<void> {
    const { profileStore, slot, profile } = this.#options;
    this.#isDiscarded = true;
    clearInterval(this.#timer);
    await this.#recording.catch(() => undefined);
    await rm(profileStore.incomingOf(profile), { force: true });
    await this.#forget(slot);
  }

  get #directory() {
    const { slot } = this.#options;
    return { path: profileDirectory(slot.directory), uid: slot.uid };
  }

  get #record(): ProfileRecord {
    const { profileStore, profile, browserMajor } = this.#options;
    return { ...profile, ...profileStore.owner, browserMajor, cookies: this.#cookies };
  }

  /** Reads the cookies, and writes them to the profile record if they have changed. */
  async #recordCookies(timeoutMs: number): Promise<void> {
    const cookies = this.#session && (await within(readCookies(this.#session), timeoutMs, undefined));
    if (!cookies || JSON.stringify(cookies) === JSON.stringify(this.#cookies)) return;
    this.#cookies = cookies;
    await this.#write();
  }

  async #write(): Promise<void> {
    const { record } = await this.#options.slot.ready;
    await writeRecord(record, this.#record);
  }

  /**
   * Removes the profile record. Otherwise, after a crash of the worker, the files of the slot's next session would be
   * saved as this profile.
   */
  async #forget(slot: Slot): Promise<void> {
    this.#options.profileStore.stopExpecting(this.#options.profile);
    const entrance = await slot.ready.catch(() => undefined);
    if (entrance) removeProfileRecord(entrance.record);
  }
}
