import { dialogCases } from "./hostile-dialogs.ts";
import { elementCases, longElementCases } from "./hostile-elements.ts";
import { go, goesOn, type HostileCase, lateMs, short, shortMs, state, tap, timedOut, titled } from "./hostile-step.ts";

const pages: readonly HostileCase[] = [
  {
    name: "activates pages opened by a target=_blank link or a script, and reaches the other pages by their ids",
    inBothRuntimes: true,
    steps: [
      go("/popups.html"),
      tap("#blank"),
      state({
        title: "Plain",
        pages: [{ id: "page_1", active: false }, { active: true }],
      }),
      tap("#open", titled("Popups"), { page_id: "page_1" }),
      state({ title: "Plain", pages: [{ id: "page_1" }, {}, { active: true }] }),
      goesOn,
    ],
  },
  {
    name: "activates the previous page when the active one closes itself, but keeps the last page",
    inBothRuntimes: true,
    steps: [
      go("/popups.html"),
      tap("#open-self"),
      state({ title: "Popups", pages: [{ id: "page_1" }, { active: true }] }),
      tap("#close"),
      state({ title: "Popups", pages: [{ id: "page_1", active: true }] }),
      tap("#close", titled("Popups")),
      state({ title: "Popups", pages: [{ id: "page_1", active: true }] }),
      // A page that closes itself at once, opened by a script and by a link without an opener.
      ...["#open-closing", "#lone"].flatMap((opener) => [
        go("/popups.html", {}, { page_id: "page_1" }),
        tap(opener),
        // Explicit, because the other page may open, become active or close at any time.
        go("/plain.html", { answer: { title: "Plain", http_status: 200 }, withinMs: 10_000 }, { page_id: "page_1" }),
        state({ title: "Plain", pages: [{ id: "page_1", active: true }] }),
      ]),
      goesOn,
    ],
  },
  {
    name: "rejects an unknown page id",
    steps: [go("/plain.html", { problem: { slug: "not-found" } }, { page_id: "page_99" }), goesOn],
  },
];

/** Navigations that end in a download or an error page of the browser. */
const interrupted: readonly HostileCase[] = [
  {
    name: "stores downloads by links, also in a new tab, and by navigations, which return to the page",
    inBothRuntimes: true,
    steps: [
      go("/popups.html"),
      tap("#download", titled("Popups")),
      state({ title: "Popups", downloads: [{ file_name: "report.csv", bytes: 8, status: "finished" }] }),
      go("/plain.html"),
      go("/download", { answer: { url: "/plain.html", title: "Plain", http_status: undefined } }),
      state({ url: "/plain.html", downloads: [{}, { file_name: "report (1).csv", bytes: 8, status: "finished" }] }),
      go("/popups.html"),
      tap("#download-blank"),
      state({ downloads: [{}, {}, { file_name: "report (2).csv", status: "finished" }] }),
      goesOn,
    ],
  },
  {
    // The browser's error page may appear after the next navigation has started.
    name: "fails endless redirects repeatedly",
    inBothRuntimes: true,
    steps: Array.from({ length: 3 }, () => [
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
    steps: [go("/silent", timedOut(/did not load/), short), goesOn],
  },
];

/** A page whose snapshot and script take seconds on a busy machine. */
const handlesNodes = (count: number): HostileCase => ({
  name: `handles a page of ${count} nodes`,
  steps: [
    go(`/nodes?count=${count}`, { answer: { title: "Nodes", http_status: 200 }, withinMs: 20_000 }),
    {
      operation: "capture",
      request: { kind: "dom_snapshot" },
      answer: { content_type: "text/html; charset=utf-8" },
      withinMs: 20_000,
    },
    tap("#last", { withinMs: 10_000 }, { timeout_ms: 9_000 }),
    goesOn,
  ],
});

/** Timeout of commands that an endless script blocks, which takes a whole processor. */
const brief = { timeout_ms: 1_000 };

const renderers: readonly HostileCase[] = [
  {
    name: "leaves a page with an endless script that a tap started",
    steps: [
      go("/endless.html"),
      tap("#now", { problem: { slug: "session-timeout" }, withinMs: shortMs }, brief),
      { operation: "state", answer: { title: "Endless", loading: true, scroll: undefined }, withinMs: 500 + lateMs },
      goesOn,
    ],
  },
  {
    name: "leaves a page whose script prevents it from loading",
    steps: [
      go("/endless-load.html", { problem: { slug: "session-timeout" }, withinMs: shortMs }, brief),
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
  handlesNodes(20_000),
];

/**
 * Behaviour of pages that a session must survive. Cases share a session, in which each begins with the one page
 * `page_1`. Only one case opens dialogs that are listed, and only one downloads files.
 */
export const hostileCases: readonly HostileCase[] = [
  ...dialogCases,
  ...pages,
  ...interrupted,
  ...loads,
  ...renderers,
  ...elementCases,
];

/** A larger page, another endless script, and cases whose behaviour driver/elements tests too. */
export const longHostileCases: readonly HostileCase[] = [
  handlesNodes(100_000),
  {
    name: "leaves a page with an undetected endless script",
    steps: [go("/endless.html"), tap("#later", {}, brief), goesOn],
  },
  ...longElementCases,
];
