import * as aiming from "./page-aim.ts";
import * as sight from "./page-sight.ts";

/** What our script does in a document. */
export type PageScript = typeof aiming;

/** The script: a function that makes it, in whose source its functions see each other. */
export const pageScript = `(() => {
  const sight = (() => { ${sourceOf(sight)} })();
  const state = { guard: undefined, frame: undefined, kept: undefined };
  ${sourceOf(aiming)}
})()`;

function sourceOf(functions: object): string {
  return `${Object.values(functions).join("\n")} return { ${Object.keys(functions).join(", ")} };`;
}
