import { go, goesOn, type HostileCase, state, tap, titled, untilTitle } from "./hostile-step.ts";

/** Dialogs and prompts of pages. */
export const dialogCases: readonly HostileCase[] = [
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
    inBothRuntimes: true,
    steps: [
      go("/dialogs.html"),
      tap("#prompt", titled("prompt null")),
      state({ dialogs: [{ kind: "prompt", message: "Name?", answer: "dismissed" }] }),
      goesOn,
    ],
  },
  {
    name: "leaves a page that asks to stay",
    inBothRuntimes: true,
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
    name: "shows the page of a 401 behind a link",
    steps: [
      go("/dialogs.html"),
      tap("#auth"),
      state({ title: "Unauthorized", dialogs: [{ kind: "http_auth", answer: "dismissed" }] }),
      goesOn,
    ],
  },
  {
    name: "shows the page of a 401 in a new tab",
    inBothRuntimes: true,
    steps: [
      go("/dialogs.html"),
      tap("#auth-blank"),
      state({
        title: "Unauthorized",
        pages: [{ id: "page_1" }, { id: "page_2", active: true }],
        dialogs: [{ kind: "http_auth", answer: "dismissed" }],
      }),
      tap("#alert", titled("alerted"), { page_id: "page_1" }),
      goesOn,
    ],
  },
  {
    name: "returns a 401 to the requesting script, and taps continue",
    steps: [
      go("/dialogs.html"),
      tap("#auth-fetch"),
      untilTitle("fetched 401"),
      tap("#alert", titled("alerted")),
      goesOn,
    ],
  },
  {
    name: "denies permissions: notifications, location, camera and clipboard",
    inBothRuntimes: true,
    steps: ["#notify", "#where", "#camera", "#clipboard"].flatMap((button) => [
      go("/dialogs.html"),
      tap(button),
      untilTitle("not granted"),
      goesOn,
    ]),
  },
  {
    name: "cancels a file chooser",
    inBothRuntimes: true,
    steps: [
      go("/dialogs.html"),
      tap("#file", titled("file asked")),
      state({ dialogs: [{ kind: "file_chooser", answer: "dismissed" }] }),
      goesOn,
    ],
  },
];
