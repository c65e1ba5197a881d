import { setImmediate as breathe } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { LendRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import {
  type CdpResponse,
  CdpResponseSchema,
  SessionCdpConnectedEventSchema,
  SessionCdpDisconnectedEventSchema,
} from "../../src/gen/pilothouse/v1/session_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import type { Targets } from "../cdp/targets.ts";
import type { Wire } from "../cdp/wire.ts";
import type { SessionFiles } from "../files/session-files.ts";
import type { HiddenPage } from "../isolation/hidden-page.ts";
import type { ProcessSettings } from "../pages/device/process-settings.ts";
import type { EventFeed } from "../pages/event-feed.ts";
import { Inbox } from "./inbox.ts";
import { lendTotals } from "./lend-totals.ts";
import { LentClient } from "./lent-client.ts";

/** After so many messages of a client others have their turn: taking them takes some 1 ms. */
const manyMessages = 10;

/** How many clients a session may have at once. */
const mostClients = 4;

export interface LendDeskOptions {
  readonly wire: Wire;
  /** The browser's full version. */
  readonly version: string;
  readonly targets: Targets;
  readonly feed: EventFeed;
  readonly files: Pick<SessionFiles, "pathOf">;
  /** What no client is told of. */
  readonly hiddenPage?: HiddenPage | undefined;
  /** Where the session's downloads go. */
  readonly downloadPath: string;
  /** Settings of the session's pages that a process takes from one session at a time. */
  readonly processSettings: ProcessSettings;
  /** Makes the session's pages again what they are to be: a client that has left may have changed them. */
  heal(): Promise<unknown>;
}

/** What the session adds that has the browser. */
export interface LendSession {
  /** Whether a person holds control: then clients only read. */
  isHeld(): boolean;
  /** Hears that a client has sent a command. */
  onCommand(): void;
}

type Answer = MessageInitShape<typeof CdpResponseSchema>;

/** Lends a session's browser to clients that speak the DevTools protocol, each as if it had it for itself. */
export class LendDesk {
  readonly #options: LendDeskOptions;
  readonly #clients = new Set<LentClient>();
  #places = 0;

  constructor(options: LendDeskOptions) {
    this.#options = options;
    const { root } = options.wire;
    for (const event of ["Browser.downloadWillBegin", "Browser.downloadProgress"] as const) {
      root.on(event, (params) => this.#tellDownload(event, params));
    }
  }

  /** Whether a client hears of the dialogs of a page, so that its answer counts before ours. */
  hearsDialogs(targetId: string): boolean {
    return [...this.#clients].some((client) => client.hearsDialogs(targetId));
  }

  /** Serves a client until it leaves, with its messages in parts. Throws `tier-limit` when there are too many. */
  async *lend(
    requests: AsyncIterable<LendRequest>,
    session: LendSession,
    signal: AbortSignal,
  ): AsyncGenerator<CdpResponse> {
    using _place = this.#takePlace();
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
      this.#tellEnd(client, performance.now() - beganAt);
      await client.gone;
      await this.#options.heal().catch(() => undefined);
    }
  }

  /** Has clients give way to who steers from now on; resolves when nothing that they have sent by now reaches a page any more. */
  async giveWay(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.giveWay()));
  }

  /** Lets clients go on if no person steers any more; resolves when they find what they have set. */
  async resume(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.resume()));
  }

  /** Ends all clients: the session has ended. */
  close(): void {
    for (const client of this.#clients) client.leave("session_ended");
  }

  #takePlace(): Disposable {
    if (this.#places >= mostClients) {
      const detail = `the session has ${mostClients} CDP connections, which is the most`;
      throw fail("tier-limit", { current_streams: mostClients, limit: mostClients }, { detail });
    }
    this.#places += 1;
    lendTotals.clients += 1;
    return {
      [Symbol.dispose]: () => {
        this.#places -= 1;
        lendTotals.clients -= 1;
      },
    };
  }

  async #admit({ isHeld, onCommand }: LendSession): Promise<LentClient> {
    const { wire, version, targets, files, downloadPath, feed, hiddenPage, processSettings } = this.#options;
    const user = await wire.attach(targets).catch((cause: unknown) => {
      throw fail("driver-error", { target_closed: true }, { detail: "the browser takes no client any more", cause });
    });
    const client = new LentClient(user, {
      browserVersion: version,
      isHeld,
      onCommand,
      hiddenPage,
      processSettings,
      fileOf: (name) => files.pathOf(name),
      pages: () => [...targets.own].filter(({ info }) => info.type === "page").length,
      keepDownloads: (browserContextId) =>
        wire.root.send("Browser.setDownloadBehavior", {
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

  /** Takes what the client sends, no faster than the browser reads it. */
  async #takeAll(client: LentClient, requests: AsyncIterable<LendRequest>, signal: AbortSignal): Promise<void> {
    const inbox = new Inbox(() => client.leave("too_slow"));
    try {
      for await (const request of requests) {
        if (request.closed) client.leave("closed");
        if (client.left) return;
        const message = await inbox.take(request);
        if (!message) continue;
        await client.take(message);
        await this.#options.wire.drained(signal);
        inbox.clear();
        if (client.messages % manyMessages === 0) await breathe();
      }
      client.leave("lost");
    } finally {
      inbox.clear();
    }
  }

  /** Where a file lies is nobody's business. */
  #tellDownload(event: string, params: object): void {
    for (const client of this.#clients) client.tellDownload(event, { ...params, filePath: undefined });
  }

  #tellEnd({ left = "lost", messages, withheld }: LentClient, durationMs: number): void {
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
