import type { Viewport } from "../../src/gen/pilothouse/v1/common_pb.ts";
import type { SessionLogLevel } from "../../src/gen/pilothouse/v1/session_log_pb.ts";
import {
  SessionPageClosedEventSchema,
  SessionPageNavigatedEventSchema,
  SessionPageOpenedEventSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { within } from "../../src/platform/deadline.ts";
import { ChallengeWatch } from "../bot-checks/challenge-watch.ts";
import { CdpProxy } from "../cdp-proxy/cdp-proxy.ts";
import type { EgressRelay } from "../egress/egress-relay.ts";
import type { MediaServer } from "../egress/media-server.ts";
import { DownloadStore } from "../files/download-store.ts";
import { FileChoosers } from "../files/file-choosers.ts";
import { SessionFiles } from "../files/session-files.ts";
import { SelectPopups } from "../input/select-popups.ts";
import type { BrowserProcess } from "../isolation/browser-process.ts";
import type { Slot } from "../isolation/slot.ts";
import { artifactsDirectory } from "../isolation/slot-block.ts";
import { LiveHub } from "../live/live-hub.ts";
import { Publication } from "../live/publication.ts";
import { ConsoleTap } from "../pages/console-tap.ts";
import type { Device } from "../pages/device/device.ts";
import { emulateDevice } from "../pages/device/device-emulation.ts";
import { createProcessSettings } from "../pages/device/process-settings.ts";
import { EventFeed } from "../pages/event-feed.ts";
import { LogRecorder } from "../pages/log-recorder.ts";
import { OpenDialogs } from "../pages/open-dialogs.ts";
import { PageRegistry } from "../pages/page-registry.ts";
import { PendingQuestions } from "../pages/pending-questions.ts";
import { SessionLog } from "../pages/session-log.ts";
import type { SessionPage } from "../pages/session-page.ts";
import type { SessionProfile } from "../profiles/session-profile.ts";
import { PageContext } from "./page-context.ts";

/** Milliseconds that a CDP client may take to answer a dialog before the session answers. */
const clientDialogMs = 5_000;

/** Optional components of a session's browser. */
interface SessionBrowserOptions {
  readonly profile?: SessionProfile | undefined;
  /** Media server to which the browser publishes its pages on request. */
  readonly mediaServer?: MediaServer | undefined;
}

/** A session's browser with the components that serve it. */
export class SessionBrowser {
  readonly slot: Slot;
  readonly pages: PageRegistry;
  /** Questions from pages to the control holder. */
  readonly pendingQuestions = new PendingQuestions(() => this.liveHub.changed());
  readonly selectPopups = new SelectPopups(this.pendingQuestions);
  readonly openDialogs: OpenDialogs;
  readonly fileChoosers: FileChoosers;
  readonly files: SessionFiles;
  readonly downloadStore: DownloadStore;
  readonly cdpProxy: CdpProxy;
  readonly liveHub: LiveHub;
  readonly feed: EventFeed;
  readonly log = new SessionLog();
  readonly challengeWatch = new ChallengeWatch();
  /** Resolves with the cause if the browser ends unexpectedly or cannot be used any longer. */
  readonly lost: Promise<string>;
  readonly #process: BrowserProcess;
  readonly #profile: SessionProfile | undefined;
  readonly #console: ConsoleTap;
  readonly #recorder: LogRecorder;
  #device: Device;
  /** Declares the browser lost. `detail` is reported as the reason for the session's end. */
  readonly reportLost: (detail: string) => void;

  constructor(slot: Slot, process: BrowserProcess, device: Device, options: SessionBrowserOptions = {}) {
    this.slot = slot;
    const { profile, mediaServer } = options;
    this.#profile = profile;
    this.#process = process;
    this.#device = device;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.lost = promise;
    this.reportLost = resolve;
    const { browserSession } = process;
    this.feed = new EventFeed((isWatched) => this.#console.setWatched(isWatched));
    this.#recorder = new LogRecorder(this.log, this.feed);
    this.#console = new ConsoleTap(this.feed, (pageId, thrown) => this.#recorder.addException(pageId, thrown));
    this.openDialogs = new OpenDialogs(this.feed, this.pendingQuestions);
    this.files = new SessionFiles(slot);
    this.fileChoosers = new FileChoosers({
      dialogs: this.openDialogs,
      questions: this.pendingQuestions,
      files: this.files,
    });
    this.downloadStore = new DownloadStore({
      browser: browserSession,
      directory: artifactsDirectory(slot.storage),
      files: this.files,
      feed: this.feed,
      holder: () => this.pendingQuestions.holder,
      onChanged: () => this.liveHub.changed(),
    });
    this.cdpProxy = new CdpProxy({
      connection: process.connection,
      version: process.version,
      targets: process.targets,
      feed: this.feed,
      files: this.files,
      hiddenPage: process.capturePage,
      downloadPath: artifactsDirectory(slot.storage),
      processSettings: createProcessSettings(process.targets, () => this.#device),
      restoreDevice: () => this.applyDevice(this.#device),
    });
    this.openDialogs.clientAnswerMs = (targetId) => (this.cdpProxy.handlesDialogs(targetId) ? clientDialogMs : 0);
    this.pages = new PageRegistry(process, {
      onOpened: (page) => this.#onOpened(page),
      onTab: (page) => this.#watchPage(page),
      onClosed: (page) => this.feed.publish(SessionPageClosedEventSchema, { pageId: page.id }),
      onLost: () => resolve("the browser no longer opens pages"),
    });
    const { capturePage } = process;
    const publication =
      mediaServer && capturePage !== undefined
        ? new Publication({ server: mediaServer, relay: slot.relay, browser: process, pages: this.pages, capturePage })
        : undefined;
    this.liveHub = new LiveHub({ pages: this.pages, viewport: () => this.viewport }, publication);
  }

  /** Applies device emulation and opens the first page. */
  async start(): Promise<void> {
    this.#process.exited.then(({ reason }) => {
      if (reason === "crashed") this.reportLost("the browser crashed");
    });
    await Promise.all([this.applyDevice(this.#device), this.downloadStore.start()]);
    await this.pages.start();
  }

  /** Emulates a device. If the device has a geolocation, grants the geolocation permission to all sites. */
  async applyDevice(device: Device): Promise<void> {
    this.#device = device;
    const { browserSession, targets, version } = this.#process;
    // Without an origin, the permission is granted to all sites.
    const grant = { permission: { name: "geolocation" }, setting: "granted" } as const;
    await Promise.all([
      emulateDevice(targets, device, version, (kind) => this.relay.countBlocked(kind)),
      device.geolocation && browserSession.send("Browser.setPermission", grant),
    ]);
  }

  /** Resolves when the browser has answered. Rejects if the browser has exited or does not answer in time. */
  async checkResponsive(timeoutMs: number): Promise<void> {
    const answer = this.#process.browserSession.send("Browser.getVersion");
    if (!(await within(answer, timeoutMs, undefined))) throw new Error("the browser did not answer");
  }

  /** Opens a page in a new context, which shares no cookies, storage or cache with others. */
  async openContext(signal: AbortSignal): Promise<PageContext> {
    const { browserSession, targets } = this.#process;
    const browser = { browserSession, targets, viewport: this.viewport };
    return PageContext.open(browser, (page) => this.openDialogs.watchTab(page.tab, page.id), signal);
  }

  get viewport(): Viewport {
    return this.#device.viewport;
  }

  /** Whether the emulated device has a touch screen. */
  get hasTouch(): boolean {
    return this.#device.archetype.hasTouch;
  }

  get relay(): EgressRelay {
    return this.slot.relay;
  }

  /** Directory for the session's uploads, downloads and large captures. */
  get storage(): string {
    return this.slot.storage;
  }

  /** Starts the log of a session. */
  startLog(level: SessionLogLevel): void {
    this.log.start(level);
    if (this.log.isFull) this.#console.record();
  }

  /** Ends the browser, saves its profile and releases its slot. */
  async dispose(): Promise<void> {
    this.pages.end();
    this.pendingQuestions.setHolder(undefined);
    this.cdpProxy.close();
    this.downloadStore.close();
    this.challengeWatch.close();
    await this.#profile?.close(this.#process);
    await this.#process.kill();
    await this.#profile?.save();
    await this.slot.release();
  }

  #onOpened(page: SessionPage): void {
    this.feed.publish(SessionPageOpenedEventSchema, { pageId: page.id, url: page.address });
  }

  #watchPage(sessionPage: SessionPage): void {
    const { tab } = sessionPage;
    this.openDialogs.watchTab(tab, sessionPage.id);
    this.fileChoosers.watchTab(tab, sessionPage.id);
    this.selectPopups.watchTab(tab);
    this.challengeWatch.watchTab(tab);
    this.#console.watchTab(tab, sessionPage.id);
    this.#recorder.watchTab(tab, sessionPage.id);
    tab.listen({
      onNavigated: (_frame, isMain) => {
        if (!isMain) return;
        this.feed.publish(SessionPageNavigatedEventSchema, { pageId: sessionPage.id, url: sessionPage.address });
      },
    });
  }
}
