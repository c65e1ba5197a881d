/** A request of a step, in the JSON of REST. */
type Json = Readonly<Record<string, unknown>>;

/** What a step has to answer; what is not named may be anything. */
export interface Expectation {
  /** Members of the answer. */
  readonly answer?: Json;
  /** The failure: its slug, members of its extensions, and what its detail says. */
  readonly problem?: { readonly slug: string; readonly extensions?: Json; readonly detail?: RegExp };
  /** The step answers within this many milliseconds. */
  readonly withinMs?: number;
}

/** One request to a session. A `state` is asked again until it is as expected, for at most 10 s. */
export interface Step extends Expectation {
  readonly operation: "navigate" | "interact" | "wait" | "capture" | "state";
  /** `url` may be a path of the fixture site. */
  readonly request?: Json;
}

/** One awkward thing that a page can do, with what a client does and what it is answered. */
export interface HostileCase {
  readonly name: string;
  readonly session?: Json;
  readonly steps: readonly Step[];
}

const go = (url: string, expectation: Expectation = {}, more: Json = {}): Step => ({
  operation: "navigate",
  request: { url, ...more },
  ...expectation,
});
const tap = (selector: string, expectation: Expectation = {}, more: Json = {}, frame?: readonly string[]): Step => ({
  operation: "interact",
  request: { action: { kind: "tap", selector, ...(frame && { frame }) }, ...more },
  ...expectation,
});
const state = (answer: Json): Step => ({ operation: "state", answer, withinMs: 11_000 });
const titled = (title: string): Expectation => ({ answer: { title } });
const timedOut = (detail: RegExp): Expectation => ({ problem: { slug: "session-timeout", detail }, withinMs: 1_900 });
const untilTitle = (title: string): Step => state({ title });

/** The session goes on: every case ends with this. */
const goesOn: Step = go("/plain.html", { answer: { title: "Plain", http_status: 200 }, withinMs: 10_000 });

const SHORT = { timeout_ms: 1_500 };

const dialogs: readonly HostileCase[] = [
  {
    name: "accepts an alert",
    steps: [
      go("/dialogs.html"),
      tap("#alert", titled("alerted")),
      state({ dialogs: [{ kind: "alert", message: "hello", answer: "accepted" }] }),
      goesOn,
    ],
  },
  {
    name: "dismisses a confirm",
    steps: [
      go("/dialogs.html"),
      tap("#confirm", titled("confirm false")),
      state({ dialogs: [{ kind: "confirm", message: "Really?", answer: "dismissed" }] }),
      goesOn,
    ],
  },
  {
    name: "dismisses a prompt",
    steps: [
      go("/dialogs.html"),
      tap("#prompt", titled("prompt null")),
      state({ dialogs: [{ kind: "prompt", message: "Name?", answer: "dismissed" }] }),
      goesOn,
    ],
  },
  {
    name: "leaves a page that does not want to be left",
    steps: [
      go("/dialogs.html"),
      tap("#leave", titled("armed")),
      goesOn,
      state({ dialogs: [{ kind: "beforeunload", answer: "accepted" }] }),
    ],
  },
  {
    name: "shows the page of a 401 instead of asking for a password",
    steps: [
      go("/auth", { answer: { title: "Unauthorized", http_status: 401 }, withinMs: 10_000 }),
      state({ dialogs: [{ kind: "http_auth", answer: "dismissed" }] }),
      goesOn,
    ],
  },
  {
    name: "denies the permission to notify",
    steps: [go("/dialogs.html"), tap("#notify"), untilTitle("not granted"), goesOn],
  },
  {
    name: "denies the permission to know the place",
    steps: [go("/dialogs.html"), tap("#where"), untilTitle("not granted"), goesOn],
  },
  {
    name: "gives no file to a file chooser",
    steps: [
      go("/dialogs.html"),
      tap("#file", titled("file asked")),
      state({ dialogs: [{ kind: "file_chooser", answer: "dismissed" }] }),
      goesOn,
    ],
  },
];

const pages: readonly HostileCase[] = [
  {
    name: "makes a page that window.open opens the active one",
    steps: [
      go("/popups.html"),
      tap("#open"),
      state({
        title: "Plain",
        pages: [
          { id: "page_1", active: false },
          { id: "page_2", active: true },
        ],
      }),
      goesOn,
    ],
  },
  {
    name: "makes a page that a target=_blank link opens the active one, and reaches the other by its id",
    steps: [
      go("/popups.html"),
      tap("#blank"),
      state({ title: "Plain", pages: [{ id: "page_1" }, { id: "page_2", active: true }] }),
      tap("#open", titled("Popups"), { page_id: "page_1" }),
      state({ pages: [{ id: "page_1" }, { id: "page_2" }, { id: "page_3", active: true }] }),
      goesOn,
    ],
  },
  {
    name: "goes back to the page before when the active one closes itself",
    steps: [
      go("/popups.html"),
      tap("#open-closing"),
      state({ title: "Popups", pages: [{ id: "page_1", active: true }] }),
      goesOn,
    ],
  },
  {
    name: "goes back when a page closes itself that no script has opened",
    steps: [
      go("/popups.html"),
      tap("#lone"),
      state({ title: "Popups", pages: [{ id: "page_1", active: true }] }),
      goesOn,
    ],
  },
  {
    name: "does not know a page that is not there",
    steps: [go("/plain.html", { problem: { slug: "not-found" } }, { page_id: "page_9" }), goesOn],
  },
];

const loads: readonly HostileCase[] = [
  {
    name: "keeps a download by link",
    steps: [
      go("/popups.html"),
      tap("#download", titled("Popups")),
      state({ title: "Popups", downloads: [{ file_name: "report.csv", bytes: 8, status: "finished" }] }),
      goesOn,
    ],
  },
  {
    name: "keeps a download by a link with a tab of its own, and comes back",
    steps: [
      go("/popups.html"),
      tap("#download-blank"),
      state({ downloads: [{ file_name: "report.csv", status: "finished" }] }),
      goesOn,
    ],
  },
  {
    name: "answers a navigation that becomes a download without a status",
    steps: [
      go("/plain.html"),
      go("/download", { answer: { url: "/plain.html", title: "Plain", http_status: undefined } }),
      state({ url: "/plain.html", downloads: [{ file_name: "report.csv", bytes: 8, status: "finished" }] }),
      goesOn,
    ],
  },
  {
    name: "stops a download above the session's bounds",
    steps: [
      go("/plain.html"),
      go("/huge-download"),
      state({ downloads: [{ file_name: "huge.bin", status: "refused" }] }),
      goesOn,
    ],
  },
  {
    name: "stays on the page at a 204",
    steps: [go("/plain.html"), go("/no-content", { answer: { url: "/plain.html", http_status: 204 } }), goesOn],
  },
  {
    name: "stays on the page at a 205",
    steps: [go("/plain.html"), go("/reset-content", { answer: { url: "/plain.html", http_status: 205 } }), goesOn],
  },
  {
    name: "gives up at endless redirects",
    steps: [
      go("/redirect-loop", { problem: { slug: "driver-error", extensions: { net_error: "ERR_TOO_MANY_REDIRECTS" } } }),
      goesOn,
    ],
  },
  {
    name: "answers in time for a site that does not",
    steps: [go("/silent", timedOut(/not loaded/), SHORT), goesOn],
  },
];

const renderers: readonly HostileCase[] = [
  {
    name: "gets out of an endless script that a tap starts",
    steps: [
      go("/endless.html"),
      tap("#now", { problem: { slug: "session-timeout" }, withinMs: 1_900 }, SHORT),
      { operation: "state", answer: { title: "Endless", loading: true, scroll: undefined }, withinMs: 1_200 },
      goesOn,
    ],
  },
  {
    name: "gets out of an endless script that nobody has noticed yet",
    steps: [go("/endless.html"), tap("#later"), goesOn],
  },
  {
    name: "gets out of a page whose script never lets it load",
    steps: [
      go("/endless-load.html", { problem: { slug: "session-timeout" }, withinMs: 1_900 }, SHORT),
      {
        operation: "wait",
        request: { condition: { kind: "text", text: "x" }, timeout_ms: 500 },
        problem: { slug: "session-timeout" },
        withinMs: 900,
      },
      {
        operation: "interact",
        request: { action: { kind: "key", key: "Enter" }, timeout_ms: 500 },
        problem: { slug: "session-timeout" },
        withinMs: 900,
      },
      goesOn,
    ],
  },
  {
    name: "handles a page of 100,000 nodes",
    steps: [
      go("/nodes?count=100000", { answer: { title: "Nodes", http_status: 200 }, withinMs: 20_000 }),
      {
        operation: "capture",
        request: { kind: "dom_snapshot" },
        answer: { content_type: "text/html; charset=utf-8" },
        withinMs: 20_000,
      },
      tap("#last", { withinMs: 10_000 }, { timeout_ms: 9_000 }),
      goesOn,
    ],
  },
];

const elements: readonly HostileCase[] = [
  {
    name: "taps an element that moves, when it stands still",
    steps: [go("/targets.html"), tap("#moving", titled("clicked moving")), goesOn],
  },
  {
    name: "says that an element keeps moving",
    steps: [go("/targets.html"), tap("#restless", timedOut(/keeps moving/), SHORT), goesOn],
  },
  {
    name: "says what an element is covered by",
    steps: [go("/targets.html"), tap("#covered", timedOut(/covered by <div id="cover">/), SHORT), goesOn],
  },
  {
    name: "taps an element when its cover has gone",
    steps: [go("/targets.html"), tap("#uncovered", titled("clicked uncovered")), goesOn],
  },
  {
    name: "says that an element is disabled",
    steps: [go("/targets.html"), tap("#disabled", timedOut(/disabled/), SHORT), goesOn],
  },
  {
    name: "taps an element once it is enabled",
    steps: [go("/targets.html"), tap("#soon", titled("clicked soon")), goesOn],
  },
  {
    name: "says that an element is not visible",
    steps: [go("/targets.html"), tap("#hidden", timedOut(/not visible/), SHORT), goesOn],
  },
  {
    name: "says that an element is not there",
    steps: [go("/targets.html"), tap("#nowhere", timedOut(/no element matches/), SHORT), goesOn],
  },
  {
    name: "notices that an element leaves while it is tapped",
    steps: [
      go("/targets.html"),
      tap("#leaves", { withinMs: 1_900 }, SHORT),
      tap("#leaves", timedOut(/no element matches/), SHORT),
      goesOn,
    ],
  },
  {
    name: "reaches into an open shadow root",
    steps: [go("/nested.html"), tap("#in-shadow", titled("clicked in-shadow")), goesOn],
  },
  {
    name: "reaches into a shadow root in a shadow root",
    steps: [go("/nested.html"), tap("#deep", titled("clicked deep")), goesOn],
  },
  {
    name: "reaches into a frame in a frame",
    steps: [go("/nested.html"), tap("#in-frame", titled("clicked in-frame"), {}, ["#outer", "iframe.inner"]), goesOn],
  },
  {
    name: "says that a frame is not there",
    steps: [go("/nested.html"), tap("#in-frame", timedOut(/action\.frame\[0\]/), SHORT, ["#nowhere"]), goesOn],
  },
];

/** What pages do that a session has to live with; each case is one session. */
export const hostileCases: readonly HostileCase[] = [...dialogs, ...pages, ...loads, ...renderers, ...elements];
