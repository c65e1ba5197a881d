import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ProxyCdpRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  type CdpResponse,
  CdpResponseSchema,
  SessionCdpConnectedEventSchema,
  SessionCdpDisconnectedEventSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import type { CdpConnection } from "../cdp/cdp-connection.ts";
import type { Targets } from "../cdp/targets.ts";
import type { SessionFiles } from "../files/session-files.ts";
import type { HiddenPage } from "../isolation/hidden-page.ts";
import type { ProcessSettings } from "../pages/device/process-settings.ts";
import type { EventFeed } from "../pages/event-feed.ts";
import { CdpClient } from "./cdp-client.ts";
import { cdpProxyTotals } from "./cdp-proxy-totals.ts";
import { Inbox } from "./inbox.ts";

/** Number of client messages handled before yielding to the event loop. Handling them takes about 1 ms. */
const manyMessages = 10;

/** Maximum number of concurrent clients per session. */
const maxClients = 4;

export interface CdpProxyOptions {
  readonly connection: CdpConnection;
  readonly version: string;
  readonly targets: Targets;
  readonly feed: EventFeed;
  readonly files: Pick<SessionFiles, "pathOf">;
  readonly hiddenPage?: HiddenPage | undefined;
  readonly downloadPath: string;
  /** Page settings that a renderer process accepts from one CDP session at a time. */
  readonly processSettings: ProcessSettings;
  /** Restores the device emulation of the pages, which a disconnected client may have changed. */
  restoreDevice(): Promise<unknown>;
}

/** Callbacks of the session that owns the browser. */
export interface ProxiedSession {
  /** Returns whether a person holds control. Clients can then only read. */
  isHeld(): boolean;
  onCommand(): void;
}

type Answer = MessageInitShape<typeof CdpResponseSchema>;

/** CDP proxy: serves a session's browser to several CDP clients, isolated from each other. */
export class CdpProxy {
  readonly #options: CdpProxyOptions;
  readonly #clients = new Set<CdpClient>();
  #connectionCount = 0;

  constructor(options: CdpProxyOptions) {
    this.#options = options;
    const { root } = options.connection;
    for (const event of ["Browser.downloadWillBegin", "Browser.downloadProgress"] as const) {
      root.on(event, (params) => this.#notifyDownload(event, params));
    }
  }

  /** Returns whether a client receives the dialogs of a page and may answer before the session does. */
  handlesDialogs(targetId: string): boolean {
    return [...this.#clients].some((client) => client.handlesDialogs(targetId));
  }

  /**
   * Serves a client until it disconnects. Yields an empty response first, then messages in chunks. Throws `tier-limit`
   * if 4 clients are connected, and `driver-error` if the browser no longer accepts clients.
   */
  async *proxyCdp(
    requests: AsyncIterable<ProxyCdpRequest>,
    session: ProxiedSession,
    signal: AbortSignal,
  ): AsyncGenerator<CdpResponse> {
    using _reservation = this.#reserveConnection();
    const client = await this.#admit(session);
    const beganAt = performance.now();
    this.#takeAll(client, requests, signal).catch(() => client.leave("lost"));
    try {
      yield answer({});
      for await (const chunk of client.outbox.chunks()) yield answer(chunk);
      if (client.left) yield answer({ closed: client.left });
    } finally {
      client.leave("lost");
      this.#clients.delete(client);
      this.#reportEnd(client, performance.now() - beganAt);
      await client.gone;
      await this.#options.restoreDevice().catch(() => undefined);
    }
  }

  /** Suspends all clients for the control holder. Resolves when no earlier client command can still reach a page. */
  async suspend(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.suspend()));
  }

  /** Resumes clients if no person holds control. Resolves when their settings are reapplied. */
  async resume(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.resume()));
  }

  /** Disconnects all clients at the end of the session. */
  close(): void {
    for (const client of this.#clients) client.leave("session_ended");
  }

  #reserveConnection(): Disposable {
    if (this.#connectionCount >= maxClients) {
      const detail = `the session has ${maxClients} CDP connections, the maximum: close one first`;
      throw fail("tier-limit", { current_streams: maxClients, limit: maxClients }, { detail });
    }
    this.#connectionCount += 1;
    cdpProxyTotals.clients += 1;
    return {
      [Symbol.dispose]: () => {
        this.#connectionCount -= 1;
        cdpProxyTotals.clients -= 1;
      },
    };
  }

  async #admit({ isHeld, onCommand }: ProxiedSession): Promise<CdpClient> {
    const { connection, version, targets, files, downloadPath, feed, hiddenPage, processSettings } = this.#options;
    const user = await connection.attach(targets).catch((cause: unknown) => {
      throw fail(
        "driver-error",
        { target_closed: true },
        { detail: "the browser no longer accepts CDP clients", cause },
      );
    });
    const client = new CdpClient(user, {
      browserVersion: version,
      isHeld,
      onCommand,
      hiddenPage,
      processSettings,
      fileOf: (name) => files.pathOf(name),
      pages: () => [...targets.own].filter(({ info }) => info.type === "page").length,
      keepDownloads: (browserContextId) =>
        connection.root.send("Browser.setDownloadBehavior", {
          behavior: "allowAndName",
          browserContextId,
          downloadPath,
          eventsEnabled: true,
        }),
    });
    this.#clients.add(client);
    feed.publish(SessionCdpConnectedEventSchema, {});
    return client;
  }

  /** Forwards client messages with backpressure from the browser's pipe. */
  async #takeAll(client: CdpClient, requests: AsyncIterable<ProxyCdpRequest>, signal: AbortSignal): Promise<void> {
    const inbox = new Inbox(() => client.leave("too_slow"));
    try {
      for await (const request of requests) {
        if (request.closed) client.leave("closed");
        if (client.left) return;
        const message = await inbox.take(request);
        if (!message) continue;
        await client.take(message);
        await this.#options.connection.drained(signal);
        inbox.clear();
        if (client.messages % manyMessages === 0) await yieldToEventLoop();
      }
      client.leave("lost");
    } finally {
      inbox.clear();
    }
  }

  /** Forwards a download event without the path on the worker. */
  #notifyDownload(event: string, params: object): void {
    for (const client of this.#clients) client.notifyDownload(event, { ...params, filePath: undefined });
  }

  #reportEnd({ left = "lost", messages, withheld }: CdpClient, durationMs: number): void {
    this.#options.feed.publish(SessionCdpDisconnectedEventSchema, {
      reason: left,
      messages: BigInt(messages),
      withheldEvents: BigInt(withheld),
      durationMs: BigInt(Math.round(durationMs)),
    });
  }
}

function answer(init: Answer): CdpResponse {
  return create(CdpResponseSchema, init);
}
