import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import type { ViewRequest } from "../../src/gen/pilothouse/fleet/v1/fleet_pb.ts";
import type { Viewport } from "../../src/gen/pilothouse/v1/common_pb.ts";
import {
  type JoinResponse,
  LiveHelloSchema,
  type LiveState,
  LiveStateSchema,
  type LiveViewer,
  LiveViewersSchema,
} from "../../src/gen/pilothouse/v1/live_pb.ts";
import { fail } from "../../src/platform/errors.ts";
import type { PageBook } from "../pages/page-book.ts";
import { summarizePages } from "../pages/page-summary.ts";
import type { Publication } from "./publication.ts";
import { Screencast } from "./screencast.ts";
import { Viewer } from "./viewer.ts";

/** How many may watch a session at once. */
const mostViewers = 32;

/** Milliseconds from a change of the session to its being told: a page that loads changes a hundred times a second. */
const stateDelay = 100;

/** Milliseconds between two looks for what nobody tells: the title that a script sets. */
const lookEvery = 1_000;

/** The browser that is shown. */
export interface LiveBrowser {
  readonly pages: PageBook;
  /** The size of its pages. */
  viewport(): Viewport;
}

/** What the session adds that has the browser. */
export interface LiveSession {
  readonly id: string;
  /** Where it is in its life, why it is paused, and who steers. */
  describe(): Omit<MessageInitShape<typeof LiveStateSchema>, "pages" | "viewport" | "$typeName">;
  /** Keeps it from being idle, until the returned object is disposed of. */
  activity(): Disposable;
}

/** One who joins. */
export interface Arrival {
  readonly who: LiveViewer;
  readonly isHidden: boolean;
  /** What it says from then on. */
  readonly requests: AsyncIterable<Pick<ViewRequest, "request" | "publishToken">>;
}

/** Shows a session to all who watch it. While nobody does, nothing runs. */
export class LiveDesk {
  readonly #browser: LiveBrowser;
  readonly #screencast: Screencast;
  readonly #publication: Publication | undefined;
  readonly #viewers = new Set<Viewer>();
  #session: LiveSession | undefined;
  #unlisten: (() => void) | undefined;
  #activity: Disposable | undefined;
  #stateTimer: NodeJS.Timeout | undefined;
  #looks: NodeJS.Timeout | undefined;
  #state: LiveState | undefined;
  #isChanged = false;

  constructor(browser: LiveBrowser, publication?: Publication) {
    this.#browser = browser;
    this.#publication = publication;
    this.#screencast = new Screencast(browser.pages, {
      onFrame: (frame) => this.#tellAll({ frame }),
      wantsFrame: () => [...this.#viewers].some(({ wantsFrame }) => wantsFrame),
    });
  }

  /** Shows the session to a viewer until it leaves. Throws `tier-limit` when there are too many. */
  async *view({ who, isHidden, requests }: Arrival, session: LiveSession): AsyncGenerator<JoinResponse> {
    this.#replace(who.id);
    if (this.#viewers.size >= mostViewers) {
      const detail = `${mostViewers} watch the session, which is the most`;
      throw fail("tier-limit", { current_streams: mostViewers, limit: mostViewers }, { detail });
    }
    const viewer = new Viewer(who, isHidden);
    this.#session = session;
    this.#viewers.add(viewer);
    const media = this.#publication ? "livekit" : "frames";
    viewer.tell({ hello: create(LiveHelloSchema, { sessionId: session.id, viewer: who, media }) });
    this.#tellViewers();
    if (this.#state) viewer.tell({ state: this.#state });
    this.#attend(viewer);
    void this.#takeAll(viewer, requests);
    try {
      yield* viewer.messages();
    } finally {
      viewer.leave();
      this.#viewers.delete(viewer);
      this.#tellViewers();
      this.#sync();
    }
  }

  /** Something that is told of the session may have changed. */
  changed(): void {
    this.#isChanged = true;
    if (this.#viewers.size > 0) this.#stateTimer ??= setTimeout(() => void this.#tellState(), stateDelay);
  }

  /** Ends all viewers: the session has ended. */
  close(failure: unknown): void {
    this.#publication?.close();
    for (const viewer of this.#viewers) viewer.leave({ failure });
  }

  /** Ends what a viewer has joined by before: its connection may have broken without a word. */
  #replace(id: string): void {
    const earlier = [...this.#viewers].find(({ who }) => who.id === id);
    if (!earlier) return;
    earlier.leave({ failure: fail("conflict", {}, { detail: "the viewer has joined again" }) });
    this.#viewers.delete(earlier);
  }

  async #takeAll(viewer: Viewer, requests: Arrival["requests"]): Promise<void> {
    try {
      for await (const { request, publishToken } of requests) {
        if (!request) continue;
        if (publishToken !== "") this.#publication?.learn(publishToken);
        viewer.take(request);
        if (request.visibility || request.subscribe) this.#attend(viewer);
        else this.#screencast.goOn();
      }
      viewer.leave();
    } catch (failure) {
      viewer.leave({ failure });
    }
  }

  /** Begins what a viewer needs that has come into sight, and shows it the page as it stands. */
  #attend(viewer: Viewer): void {
    this.#sync();
    const frame = this.#screencast.last;
    if (frame && viewer.seesFrames) viewer.tell({ frame });
    this.#screencast.goOn();
  }

  /** Runs what those who watch need, and no more. */
  #sync(): void {
    const isWatched = this.#viewers.size > 0;
    const isSeen = [...this.#viewers].some(({ isHidden }) => !isHidden);
    this.#screencast.turn([...this.#viewers].some(({ seesFrames }) => seesFrames));
    this.#publication?.turn([...this.#viewers].some(({ isSubscribed }) => isSubscribed));
    if (isSeen) this.#activity ??= this.#session?.activity();
    else this.#activity = void this.#activity?.[Symbol.dispose]();
    if (isWatched) {
      this.#unlisten ??= this.#browser.pages.changes.listen(() => {
        this.#screencast.follow();
        this.#publication?.follow();
        this.changed();
      });
      this.#looks ??= setInterval(() => this.changed(), lookEvery);
      if (!this.#state) this.changed();
      return;
    }
    this.#looks = void clearInterval(this.#looks);
    this.#unlisten = void this.#unlisten?.();
    this.#stateTimer = void clearTimeout(this.#stateTimer);
    this.#state = undefined;
  }

  #tellViewers(): void {
    this.#tellAll({ viewers: create(LiveViewersSchema, { viewers: [...this.#viewers].map(({ who }) => who) }) });
  }

  async #tellState(): Promise<void> {
    this.#isChanged = false;
    const pages = await summarizePages(this.#browser.pages);
    this.#stateTimer = undefined;
    if (this.#isChanged) this.changed();
    if (this.#viewers.size === 0) return;
    const state = create(LiveStateSchema, { ...this.#session?.describe(), pages, viewport: this.#browser.viewport() });
    if (this.#state && equals(LiveStateSchema, this.#state, state)) return;
    this.#state = state;
    this.#tellAll({ state });
  }

  #tellAll(news: Parameters<Viewer["tell"]>[0]): void {
    for (const viewer of this.#viewers) viewer.tell(news);
  }
}
