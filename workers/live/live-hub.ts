import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import type { ViewRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Viewport } from "../../src/gen/pilothouse/v1/common_pb.ts";
import {
  type JoinResponse,
  LiveHelloSchema,
  type LiveState,
  LiveStateSchema,
  type LiveViewer,
  LiveViewerSchema,
  LiveViewersSchema,
} from "../../src/gen/pilothouse/v1/live_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import { withoutLookahead } from "../injected/plain-text.ts";
import type { PageRegistry } from "../pages/page-registry.ts";
import { summarizePages } from "../pages/page-summary.ts";
import type { Publication } from "./publication.ts";
import { Screencast } from "./screencast.ts";
import { Viewer } from "./viewer.ts";

/** Maximum number of viewers per session. */
const maxViewers = 32;

/** Milliseconds between a change and the next state message. A loading page changes a hundred times a second. */
const stateDelay = 100;

/** Milliseconds between polls for changes without events, such as a title set by a script. */
const pollEvery = 1_000;

export interface LiveBrowser {
  readonly pages: PageRegistry;
  /** Returns the viewport size of the browser's pages. */
  viewport(): Viewport;
}

/** The session that owns the browser. */
export interface LiveSession {
  readonly id: string;
  /** Returns the state for viewers, without the pages and the viewport. */
  describe(): Omit<MessageInitShape<typeof LiveStateSchema>, "pages" | "viewport" | "$typeName">;
  /** Keeps the session from being idle until the returned object is disposed of. */
  activity(): Disposable;
}

export interface JoiningViewer {
  readonly who: LiveViewer;
  readonly isHidden: boolean;
  /** Messages of the viewer after the join. */
  readonly requests: AsyncIterable<Pick<ViewRequest, "request" | "publishToken">>;
}

/** Streams a session to its viewers. Nothing runs without viewers or frame readers. */
export class LiveHub {
  readonly #browser: LiveBrowser;
  readonly #screencast: Screencast;
  readonly #publication: Publication | undefined;
  readonly #viewers = new Set<Viewer>();
  /** Gateways that read the frames. */
  readonly #frameReaders = new Set<Viewer>();
  #session: LiveSession | undefined;
  #unlisten: (() => void) | undefined;
  #activity: Disposable | undefined;
  #stateTimer: NodeJS.Timeout | undefined;
  #statePoll: NodeJS.Timeout | undefined;
  #state: LiveState | undefined;
  #isChanged = false;

  constructor(browser: LiveBrowser, publication?: Publication) {
    this.#browser = browser;
    this.#publication = publication;
    this.#screencast = new Screencast(browser.pages, {
      onFrame: (frame) => {
        for (const each of this.#frameReaders) each.send({ frame });
      },
      wantsFrame: () => [...this.#frameReaders].some(({ wantsFrame }) => wantsFrame),
    });
  }

  /**
   * Yields the messages for a viewer until it leaves. Throws `tier-limit` if there are too many viewers, `conflict`
   * when the viewer joins again, and the failure passed to `close`.
   */
  async *view({ who, isHidden, requests }: JoiningViewer, session: LiveSession): AsyncGenerator<JoinResponse> {
    this.#replace(who.id);
    if (this.#viewers.size >= maxViewers) {
      const detail = `the session has ${maxViewers} viewers, the maximum: wait until a viewer leaves`;
      throw fail("tier-limit", { current_streams: maxViewers, limit: maxViewers }, { detail });
    }
    const viewer = new Viewer(who, isHidden);
    this.#session = session;
    this.#viewers.add(viewer);
    const media = this.#publication ? "livekit" : "frames";
    viewer.send({ hello: create(LiveHelloSchema, { sessionId: session.id, viewer: who, media }) });
    this.#sendViewers();
    if (this.#state) viewer.send({ state: this.#state });
    this.#sync();
    void this.#receiveAll(viewer, requests);
    try {
      yield* viewer.messages();
    } finally {
      viewer.leave();
      this.#viewers.delete(viewer);
      this.#sendViewers();
      this.#sync();
    }
  }

  /** Yields frames for a gateway until it ends the requests. */
  async *frames(requests: JoiningViewer["requests"]): AsyncGenerator<JoinResponse> {
    const reader = new Viewer(create(LiveViewerSchema), false);
    this.#frameReaders.add(reader);
    this.#sync();
    const frame = this.#screencast.last;
    if (frame) reader.send({ frame });
    this.#screencast.acknowledge();
    void this.#receiveAll(reader, requests);
    try {
      yield* reader.messages();
    } finally {
      this.#frameReaders.delete(reader);
      this.#sync();
    }
  }

  /** Schedules a state message after a possible change. */
  changed(): void {
    this.#isChanged = true;
    if (this.#viewers.size > 0) this.#stateTimer ??= setTimeout(() => void this.#sendState(), stateDelay);
  }

  /** Disconnects all viewers and frame readers when the session has ended. */
  close(failure: unknown): void {
    this.#publication?.close();
    for (const each of [...this.#viewers, ...this.#frameReaders]) each.leave({ failure });
  }

  /** Ends the viewer's earlier connection, which may have broken silently. */
  #replace(id: string): void {
    const earlier = [...this.#viewers].find(({ who }) => who.id === id);
    if (!earlier) return;
    earlier.leave({ failure: fail("conflict", {}, { detail: "the viewer has joined from another connection" }) });
    this.#viewers.delete(earlier);
  }

  async #receiveAll(viewer: Viewer, requests: JoiningViewer["requests"]): Promise<void> {
    try {
      for await (const { request, publishToken } of requests) {
        if (!request) continue;
        if (publishToken !== "") this.#publication?.setToken(publishToken);
        viewer.receive(request);
        if (request.visibility || request.subscribe) this.#sync();
        else this.#screencast.acknowledge();
      }
      viewer.leave();
    } catch (failure) {
      viewer.leave({ failure });
    }
  }

  /** Starts the sources that the current viewers and frame readers need, and stops the others. */
  #sync(): void {
    const isWatched = this.#viewers.size > 0;
    const isSeen = [...this.#viewers].some(({ isHidden }) => !isHidden);
    this.#screencast.setEnabled(this.#frameReaders.size > 0);
    this.#publication?.setEnabled([...this.#viewers].some(({ isSubscribed }) => isSubscribed));
    if (isSeen) this.#activity ??= this.#session?.activity();
    else this.#activity = void this.#activity?.[Symbol.dispose]();
    if (isWatched) {
      this.#unlisten ??= this.#browser.pages.changes.listen(() => {
        this.#screencast.follow();
        this.#publication?.follow();
        this.changed();
      });
      this.#statePoll ??= setInterval(() => this.changed(), pollEvery);
      if (!this.#state) this.changed();
      return;
    }
    this.#statePoll = void clearInterval(this.#statePoll);
    this.#unlisten = void this.#unlisten?.();
    this.#stateTimer = void clearTimeout(this.#stateTimer);
    this.#state = undefined;
  }

  #sendViewers(): void {
    this.#sendAll({ viewers: create(LiveViewersSchema, { viewers: [...this.#viewers].map(({ who }) => who) }) });
  }

  async #sendState(): Promise<void> {
    this.#isChanged = false;
    const pages = await summarizePages(this.#browser.pages);
    // Viewers see the page itself, so texts are not masked. The characters that only masking needs are removed.
    for (const page of pages)
      Object.assign(page, { url: withoutLookahead(page.url), title: withoutLookahead(page.title) });
    this.#stateTimer = undefined;
    if (this.#isChanged) this.changed();
    if (this.#viewers.size === 0) return;
    const state = create(LiveStateSchema, { ...this.#session?.describe(), pages, viewport: this.#browser.viewport() });
    if (this.#state && equals(LiveStateSchema, this.#state, state)) return;
    this.#state = state;
    this.#sendAll({ state });
  }

  #sendAll(messages: Parameters<Viewer["send"]>[0]): void {
    for (const viewer of this.#viewers) viewer.send(messages);
  }
}
