import { dialogCases } from "./hostile-dialogs.ts";
import { elementCases } from "./hostile-elements.ts";
import { go, goesOn, type HostileCase, lateMs, short, shortMs, state, tap, timedOut, titled } from "./hostile-step.ts";

const pages: readonly HostileCase[] = [
  {
    name: "activates a page opened by window.open",
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
    name: "activates a page opened by a target=_blank link and reaches the other page by its id",
    inBothRuntimes: true,
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
    name: "activates the previous page when the active one closes itself",
    steps: [
      go("/popups.html"),
      tap("#open-closing"),
      // Explicit, because the other page may open, become active or close at any time.
      go("/plain.html", { answer: { title: "Plain", http_status: 200 }, withinMs: 10_000 }, { page_id: "page_1" }),
      state({ title: "Plain", pages: [{ id: "page_1", active: true }] }),
    ],
  },
  {
    name: "activates the previous page when a page not opened by a script closes itself",
    steps: [
      go("/popups.html"),
      tap("#lone"),
      // Explicit, because the other page may open, become active or close at any time.
      go("/plain.html", { answer: { title: "Plain", http_status: 200 }, withinMs: 10_000 }, { page_id: "page_1" }),
      state({ title: "Plain", pages: [{ id: "page_1", active: true }] }),
    ],
  },
  {
    name: "closes a page that closes itself on a tap, but keeps the last page",
    inBothRuntimes: true,
    steps: [
      go("/popups.html"),
      tap("#open-self"),
      state({ title: "Popups", pages: [{ id: "page_1" }, { id: "page_2", active: true }] }),
      tap("#close", {}, { page_id: "page_2" }),
      state({ title: "Popups", pages: [{ id: "page_1", active: true }] }),
      tap("#close", titled("Popups")),
      state({ title: "Popups", pages: [{ id: "page_1", active: true }] }),
      goesOn,
    ],
  },
  {
    name: "rejects an unknown page id",
    steps: [go("/plain.html", { problem: { slug: "not-found" } }, { page_id: "page_9" }), goesOn],
  },
];

/** Navigations that end in a download or an error page of the browser. */
const interrupted: readonly HostileCase[] = [
  {
    name: "stores a download by link",
    steps: [
      go("/popups.html"),
      tap("#download", titled("Popups")),
      state({ title: "Popups", downloads: [{ file_name: "report.csv", bytes: 8, status: "finished" }] }),
      goesOn,
    ],
  },
  {
    name: "stores a download by a link that opens a tab, and returns to the page",
    inBothRuntimes: true,
    steps: [
      go("/popups.html"),
      tap("#download-blank"),
      state({ downloads: [{ file_name: "report.csv", status: "finished" }] }),
      goesOn,
    ],
  },
  {
    name: "returns no status for a navigation that becomes a download",
    inBothRuntimes: true,
    steps: [
      go("/plain.html"),
      go("/download", { answer: { url: "/plain.html", title: "Plain", http_status: undefined } }),
      state({ url: "/plain.html", downloads: [{ file_name: "report.csv", bytes: 8, status: "finished" }] }),
      goesOn,
    ],
  },
  {
    name: "stops a download that exceeds the session's limits",
    steps: [
      go("/plain.html"),
      go("/huge-download"),
      state({ downloads: [{ file_name: "huge.bin", status: "refused" }] }),
      goesOn,
    ],
  },
  {
    // The browser's error page may appear after the next navigation has started.
    name: "fails endless redirects repeatedly",
    inBothRuntimes: true,
    steps: Array.from({ length: 5 }, () => [
      go("/redirect-loop", { problem: { slug: "driver-error", extensions: { net_error: "ERR_TOO_MANY_REDIRECTS" } } }),
      goesOn,
    ]).flat(),
  },
];

const loads: readonly HostileCase[] = [
  {
    name: "stays on the page after a 204",
    steps: [go("/plain.html"), go("/no-content", { answer: { url: "/plain.html", http_status: 204 } }), goesOn],
  },
  {
    name: "stays on the page after a 205",
    steps: [go("/plain.html"), go("/reset-content", { answer: { url: "/plain.html", http_status: 205 } }), goesOn],
  },
  {
    name: "answers in time although the site does not",
    steps: [go("/silent", timedOut(/not loaded/), short), goesOn],
  },
];

const renderers: readonly HostileCase[] = [
  {
    name: "leaves a page with an endless script that a tap started",
    steps: [
      go("/endless.html"),
      tap("#now", { problem: { slug: "session-timeout" }, withinMs: shortMs }, short),
      { operation: "state", answer: { title: "Endless", loading: true, scroll: undefined }, withinMs: 500 + lateMs },
      goesOn,
    ],
  },
  {
    name: "leaves a page with an undetected endless script",
    steps: [go("/endless.html"), tap("#later"), goesOn],
  },
  {
    name: "leaves a page whose script prevents it from loading",
    steps: [
      go("/endless-load.html", { problem: { slug: "session-timeout" }, withinMs: shortMs }, short),
      {
        operation: "wait",
        request: { condition: { kind: "text", text: "x" }, timeout_ms: 500 },
        problem: { slug: "session-timeout" },
        withinMs: 500 + lateMs,
      },
      {
        operation: "interact",
        request: { action: { kind: "key", key: "Enter" }, timeout_ms: 500 },
        problem: { slug: "session-timeout" },
        withinMs: 500 + lateMs,
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

/** Behaviour of pages that a session must survive. Only cases with `keepsSession` share a session. */
export const hostileCases: readonly HostileCase[] = [
  ...dialogCases,
  ...pages,
  ...interrupted,
  ...loads,
  ...renderers,
  ...elementCases.map((each) => ({ ...each, keepsSession: true as const })),
];
