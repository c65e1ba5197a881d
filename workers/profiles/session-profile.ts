import { rm } from "node:fs/promises";
import { within } from "../../src/platform/deadline.ts";
import { fail } from "../../src/platform/errors.ts";
import type { Log } from "../base/log.ts";
import type { CdpSession } from "../cdp/cdp-session.ts";
import type { BrowserProcess } from "../isolation/browser-process.ts";
import type { Slot } from "../isolation/slot.ts";
import { profileDirectory, removeProfileRecord } from "../isolation/slot-block.ts";
import { unpackProfile } from "./profile-files.ts";
import { type Cookie, readCookies, setCookies } from "./profile-manifest.ts";
import { type ProfileRecord, writeRecord } from "./profile-record.ts";
import type { ProfileShelf, UsedProfile } from "./profile-shelf.ts";
import { saveProfile } from "./save-profile.ts";

/** How often cookies are read, for the case that there is no asking at the end; as often as the browser flushes its own. */
const cookiesMs = 10_000;

/**
 * How long cookies are waited for at the end, and then the browser's own end; both take 100 ms on a quiet machine. One
 * that does not end, as behind an endless script, writes localStorage down all the same, 5 s after its change.
 */
const lastCookiesMs = 1_000;
const closeMs = 6_000;

export interface SessionProfileOptions {
  readonly shelf: ProfileShelf;
  readonly slot: Slot;
  readonly profile: UsedProfile;
  readonly browserMajor: number;
  readonly log: Log;
}

/** The profile of one session: put into its slot before the launch, and taken out of it after the browser's end. */
export class SessionProfile {
  readonly #options: SessionProfileOptions;
  #cookies: readonly Cookie[] = [];
  #session: CdpSession | undefined;
  #isDiscarded = false;
  #timer: NodeJS.Timeout | undefined;
  #noting: Promise<void> = Promise.resolve();

  constructor(options: SessionProfileOptions) {
    this.#options = options;
    options.shelf.expect(options.profile);
  }

  /** Unpacks the store that was put in place into the slot, before the launch. */
  async restore(signal: AbortSignal): Promise<void> {
    const { shelf, slot, profile, browserMajor } = this.#options;
    if (profile.version === 0n) return;
    await slot.ready;
    const source = shelf.incomingOf(profile);
    const { cookies } = await unpackProfile(source, this.#directory, signal, (manifest) => {
      if (manifest.browserMajor <= browserMajor) return;
      const detail = `the profile was written by version ${manifest.browserMajor} of the browser, this one is ${browserMajor}`;
      throw fail("driver-not-integrated", {}, { detail });
    });
    this.#cookies = cookies;
    await rm(source, { force: true });
  }

  /** Gives the launched browser the cookies, and keeps a copy of them from now on. */
  async attach({ browserSession }: BrowserProcess): Promise<void> {
    this.#session = browserSession;
    if (this.#cookies.length > 0) await setCookies(browserSession, this.#cookies);
    if (this.#isDiscarded) return;
    this.#timer = setInterval(() => {
      this.#noting = this.#note(cookiesMs).catch((error: unknown) => {
        this.#options.log.warn({ err: error, session: this.#options.profile.sessionId }, "cookies could not be noted");
      });
    }, cookiesMs);
    // Only what is whole may ever be saved, be it by who finds it after our death.
    this.#noting = this.#write();
    await this.#noting;
  }

  /** Reads the cookies a last time and has the browser end in order, so that it writes what it holds; all of it bounded. */
  async close({ browserSession, ended }: BrowserProcess): Promise<void> {
    clearInterval(this.#timer);
    await this.#note(lastCookiesMs).catch(() => undefined);
    browserSession.send("Browser.close").catch(() => undefined);
    await within(ended, closeMs, undefined);
  }

  /** Packs what the browser has left, once none of its processes is there any more. */
  async save(): Promise<void> {
    const { shelf, slot, log, profile } = this.#options;
    try {
      await this.#noting;
      await saveProfile(shelf, this.#directory, this.#record, log);
    } catch (error) {
      log.error({ err: error, session: profile.sessionId }, "a profile is lost: it could not be put on the shelf");
    }
    await this.#forget(slot);
  }

  /** The session has never begun: there is nothing to save. */
  async discard(): Promise<void> {
    const { shelf, slot, profile } = this.#options;
    this.#isDiscarded = true;
    clearInterval(this.#timer);
    await this.#noting.catch(() => undefined);
    await rm(shelf.incomingOf(profile), { force: true });
    await this.#forget(slot);
  }

  get #directory() {
    const { slot } = this.#options;
    return { path: profileDirectory(slot.directory), uid: slot.uid };
  }

  get #record(): ProfileRecord {
    const { shelf, profile, browserMajor } = this.#options;
    return { ...profile, ...shelf.owner, browserMajor, cookies: this.#cookies };
  }

  /** Notes the cookies beside the slot when they have changed. */
  async #note(patienceMs: number): Promise<void> {
    const cookies = this.#session && (await within(readCookies(this.#session), patienceMs, undefined));
    if (!cookies || JSON.stringify(cookies) === JSON.stringify(this.#cookies)) return;
    this.#cookies = cookies;
    await this.#write();
  }

  async #write(): Promise<void> {
    const { record } = await this.#options.slot.ready;
    await writeRecord(record, this.#record);
  }

  /** From now on what lies in the slot is nobody's: before it is cleared, and another session's files lie there. */
  async #forget(slot: Slot): Promise<void> {
    this.#options.shelf.expectNoMore(this.#options.profile);
    const entrance = await slot.ready.catch(() => undefined);
    if (entrance) removeProfileRecord(entrance.record);
  }
}
