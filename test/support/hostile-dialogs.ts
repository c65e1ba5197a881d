import { go, goesOn, type HostileCase, state, tap, titled, untilTitle } from "./hostile-step.ts";

/** Dialogs of the first steps, in order. */
const answered = [
  { kind: "alert", message: "hello", answer: "accepted" },
  { kind: "confirm", message: "Really?", answer: "dismissed" },
  { kind: "prompt", message: "Name?", answer: "dismissed" },
  { kind: "file_chooser", answer: "dismissed" },
  { kind: "alert", answer: "accepted" },
  { kind: "beforeunload", answer: "accepted" },
];

const passwordRefused = { kind: "http_auth", answer: "dismissed" };

/** Dialogs and prompts of pages. */
export const dialogCases: readonly HostileCase[] = [
  {
    name: "answers dialogs, unload prompts, file choosers and passwords, also in a new tab",
    inBothRuntimes: true,
    steps: [
      go("/dialogs.html"),
      tap("#alert", titled("alerted")),
      tap("#confirm", titled("confirm false")),
      tap("#prompt", titled("prompt null")),
      tap("#file", titled("file asked")),
      tap("#auth-fetch"),
      untilTitle("fetched 401"),
      tap("#alert", titled("alerted")),
      tap("#leave", titled("armed")),
      goesOn,
      state({ dialogs: answered }),
      go("/auth", { answer: { title: "Unauthorized", http_status: 401 }, withinMs: 10_000 }),
      go("/dialogs.html"),
      tap("#auth"),
      state({ title: "Unauthorized", dialogs: [...answered, passwordRefused, passwordRefused] }),
      go("/dialogs.html"),
      tap("#auth-blank"),
      state({
        title: "Unauthorized",
        pages: [{ id: "page_1" }, { active: true }],
        dialogs: [...answered, passwordRefused, passwordRefused, passwordRefused],
      }),
      tap("#alert", titled("alerted"), { page_id: "page_1" }),
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
];
