// Finds code that reads the time or waits without `Clock`, because tests cannot control such code. Exits with 1 and a
// line per file whose count differs from tools/lint/raw-time.json.
import { existsSync, globSync, readFileSync } from "node:fs";

/** Modules that implement time. */
const own = ["clock", "bounded-wait", "deadline"].map((name) => `src/platform/${name}.ts`);

/** Generated code, and code that runs in browsers. */
const foreign = /^(src\/gen|gateway\/web|workers\/injected)\//;

/** `setImmediate` is allowed, since it waits for a turn of the event loop and not for time. */
const rawTime = new RegExp(
  [
    /(?<![\w.])(?:globalThis\.)?set(?:Timeout|Interval)\(/,
    /\b(?:Date|performance)\.now\b|\bnew Date\(\)|\bAbortSignal\.timeout\b/,
    /\{[^}]*set(?:Timeout|Interval)[^}]*\} from "node:timers/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "g",
);

/** Comments on lines of their own. */
const comments = /^\s*(?:\/\/|\/?\*).*$/gm;

const listed: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL("lint/raw-time.json", import.meta.url), "utf8"),
);
const sources = globSync("{src,gateway,workers}/**/*.ts").filter((path) => !foreign.test(path) && !own.includes(path));

for (const path of new Set([...sources, ...Object.keys(listed)].sort())) {
  const text = existsSync(path) ? readFileSync(path, "utf8").replaceAll(comments, "") : "";
  const [found, expected] = [text.match(rawTime)?.length ?? 0, listed[path] ?? 0];
  if (found === expected) continue;
  process.exitCode = 1;
  const advice = found > expected ? "read and await the time by Clock" : "correct the list";
  console.error(`${path}: expected ${expected} raw reads of the time or timers, got ${found}: ${advice}`);
}
