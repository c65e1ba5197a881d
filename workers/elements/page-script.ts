import * as aiming from "./page-aim.ts";
import * as guards from "./page-guard.ts";
import * as scrolling from "./page-scroll.ts";
import * as sight from "./page-sight.ts";
import * as texts from "./page-text.ts";
import * as waits from "./page-wait.ts";

/** What our script does in a document. */
export type PageScript = typeof aiming &
  typeof guards &
  typeof scrolling &
  typeof waits &
  Pick<typeof sight, "hitAt" | "title">;

/** The script: an expression that makes it, in which the functions of each file see each other and what they declare. */
export const pageScript = `(() => {
  const state = {};
  const sight = ${sourceOf(sight)};
  const texts = ${sourceOf(texts)};
  const waits = ${sourceOf(waits)};
  const guards = ${sourceOf(guards)};
  const aiming = ${sourceOf(aiming)};
  return { hitAt: sight.hitAt, title: sight.title, ...waits, ...guards, ...aiming, ...${sourceOf(scrolling)} };
})()`;

function sourceOf(functions: object): string {
  const names = Object.keys(functions).join(", ");
  return `(() => { ${Object.values(functions).join("\n")} return { ${names} }; })()`;
}
