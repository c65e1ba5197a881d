// Checks that no two definitions have the same exported name, no two files the same name, and that names contain none of
// the replaced words. Exits with 1 and a line per violation. Words and exceptions are in tools/lint/names.json.
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";

interface Exceptions {
  /** File names that each folder may have. */
  readonly roles: readonly string[];
  /** Reason for each name that two files share. */
  readonly names: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  /** Replacement of each word that no name may contain. */
  readonly words: Readonly<Record<string, string>>;
  /** Reason for each name that contains such a word. */
  readonly wordNames: Readonly<Record<string, string>>;
}

const exceptions: Exceptions = JSON.parse(readFileSync(new URL("lint/names.json", import.meta.url), "utf8"));
const exported =
  /^export (?:declare )?(?:async )?(?:abstract )?(?:function\*?|const|class|interface|type|enum) ([\w$]+)/gm;
const service = globSync("{src,gateway,workers}/**/*.ts").filter((path) => !path.startsWith("src/gen/"));
/** Sources of the console, a program of its own: it may use names of the service. */
const web = globSync("console/**/*.{ts,tsx}");

/** Reports each key that several files share without an exception, and exceptions that no longer apply. */
function check(
  what: string,
  entries: Iterable<readonly [string, string]>,
  reasons: Readonly<Record<string, string>>,
): void {
  const owners = Map.groupBy(entries, ([key]) => key);
  const shared = new Map([...owners].map(([key, all]) => [key, new Set(all.map(([, path]) => path))] as const));
  for (const [key, paths] of [...shared].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (paths.size === 1 || key in reasons) continue;
    process.exitCode = 1;
    console.error(`${key}: expected one ${what}, got ${[...paths].sort().join(", ")}: rename all but one`);
  }
  for (const key of Object.keys(reasons)) {
    if ((shared.get(key)?.size ?? 0) > 1) continue;
    process.exitCode = 1;
    console.error(`${key}: has one ${what}: remove it from tools/lint/names.json`);
  }
}

const definitionsIn = (sources: readonly string[]) =>
  sources.flatMap((path) =>
    [...readFileSync(path, "utf8").matchAll(exported)].map(([, name = ""]) => [name, path] as const),
  );
const filesIn = (sources: readonly string[]) =>
  sources.map((path) => [basename(path), path] as const).filter(([name]) => !exceptions.roles.includes(name));

check("definition", definitionsIn(service), exceptions.names);
check("file", filesIn(service), exceptions.files);
check("definition", definitionsIn(web), {});
check("file", filesIn(web), {});

/** Text that is not checked: comments, strings, templates, and names of the API or the database (`snake_case`). */
const notNames = /\/\*[\s\S]*?\*\/|\/\/.*|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|[\w$]+_[\w$]*/g;

for (const path of [...service, ...web]) {
  const code = readFileSync(path, "utf8").replace(notNames, " ");
  for (const name of new Set(code.match(/[A-Za-z$][\w$]*/g))) {
    if (name in exceptions.wordNames) continue;
    const words = name.match(/[A-Z]?[a-z]+/g)?.map((word) => word.toLowerCase()) ?? [];
    const found = words.find((word) => Object.hasOwn(exceptions.words, word));
    if (found === undefined) continue;
    process.exitCode = 1;
    console.error(`${path}: ${name}: expected ${exceptions.words[found]}, got ${found}`);
  }
}
