import * as aiming from "./page-aim.ts";
import * as clips from "./page-clip.ts";
import * as fields from "./page-fields.ts";
import * as focus from "./page-focus.ts";
import * as guards from "./page-guard.ts";
import * as hosts from "./page-hosts.ts";
import * as looks from "./page-look.ts";
import * as refs from "./page-refs.ts";
import * as roles from "./page-role.ts";
import * as scrolling from "./page-scroll.ts";
import * as searching from "./page-search.ts";
import * as sight from "./page-sight.ts";
import * as texts from "./page-text.ts";
import * as waits from "./page-wait.ts";

/** Functions that our script exposes in a document. */
export type PageScript = typeof aiming &
  typeof fields &
  typeof focus &
  typeof guards &
  typeof scrolling &
  typeof waits &
  Pick<typeof looks, "look" | "numberFound"> &
  Pick<typeof hosts, "doubtfulElements" | "keepClosed"> &
  Pick<typeof refs, "elementFor"> &
  Pick<typeof sight, "hitAt" | "title">;

/** Expression that creates the script. Modules see each other under the names that they declare. */
export const pageScript = `(() => {
  const state = {};
  const sight = ${sourceOf(sight)};
  const texts = ${sourceOf(texts)};
  const waits = ${sourceOf(waits)};
  const fields = ${sourceOf(fields)};
  const focus = ${sourceOf(focus)};
  const guards = ${sourceOf(guards)};
  const aiming = ${sourceOf(aiming)};
  const scrolling = ${sourceOf(scrolling)};
  const clips = ${sourceOf(clips)};
  const roles = ${sourceOf(roles)};
  const refs = ${sourceOf(refs)};
  const hosts = ${sourceOf(hosts)};
  const searching = ${sourceOf(searching)};
  const { look, numberFound } = ${sourceOf(looks)};
  const { doubtfulElements, keepClosed } = hosts;
  const { elementFor } = refs;
  const { hitAt, title } = sight;
  const seen = { look, numberFound, doubtfulElements, keepClosed, elementFor, hitAt, title };
  return { ...seen, ...waits, ...fields, ...focus, ...guards, ...aiming, ...scrolling };
})()`;

function sourceOf(functions: object): string {
  const names = Object.keys(functions).join(", ");
  return `(() => { ${Object.values(functions).join("\n")} return { ${names} }; })()`;
}
