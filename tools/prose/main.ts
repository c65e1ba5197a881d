// Finds text that is not plain technical English in comments, Markdown, messages, and subjects of commits since the commit
// that added this file. Exits with 1 for a match of patterns.json that exemptions.jsonl does not list.
//   node tools/prose/main.ts [--root=<tree>] [paths]
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Passage, readerOf } from "./passages.ts";
import { findPatterns, prosePatterns } from "./patterns.ts";

/** A line of exemptions.jsonl, which allows a pattern in texts that contain `text`. */
interface Exemption {
  readonly file: string;
  readonly pattern: string;
  readonly text: string;
  readonly reason: string;
}

/** Largest share of exempt texts. */
const maxExempt = 0.03;

/** Generated files, data, and texts of other authors. */
const foreign =
  /^(?:(?:sdk\/\w+\/)?(?:src\/gen|dist|node_modules|\.venv)|test\/support\/pages|proto\/(?:buf|google)|\.cache)(?:\/|$)/;

const { values, positionals } = parseArgs({ options: { root: { type: "string" } }, allowPositionals: true });

/** Runs git and returns its output; "" if it fails, such as in a tree without history. */
function git(cwd: string, ...args: string[]): string {
  return spawnSync("git", ["-C", cwd, ...args], { encoding: "utf8", maxBuffer: 1 << 28 }).stdout ?? "";
}

/** Returns --root, else the checkout of the first absolute path, else the working directory. */
function findRoot(): string {
  if (values.root !== undefined) return resolve(values.root);
  const path = positionals.find(isAbsolute);
  if (path === undefined) return process.cwd();
  return git(path.includes(".") ? dirname(path) : path, "rev-parse", "--show-toplevel").trim();
}

const root = findRoot();

function listFiles(): string[] {
  const wanted = positionals.map((path) => relative(root, resolve(root, path)));
  const files = globSync("**/*.{ts,tsx,mjs,proto,sh,md}", { cwd: root, exclude: (path) => foreign.test(path) });
  const isWanted = (file: string) => wanted.some((path) => file === path || file.startsWith(`${path}/`));
  return files.filter((file) => wanted.length === 0 || isWanted(file)).sort();
}

/** Reads the subjects of commits after the commit that added this tool. */
function readSubjects(): Map<string, Passage[]> {
  const [added] = git(root, "log", "--diff-filter=A", "--format=%H", "--", "tools/prose/main.ts").split("\n");
  const log = added ? git(root, "log", "--no-merges", "--format=%h %s", `${added}..HEAD`) : "";
  return new Map(
    log.split("\n").flatMap((line) => {
      const [, hash, text = ""] = /^(\w+) (.*)$/.exec(line) ?? [];
      return hash === undefined ? [] : [[`commit ${hash}`, [{ kind: "subject", line: 1, text }]]];
    }),
  );
}

const texts = positionals.length === 0 ? readSubjects() : new Map<string, Passage[]>();
for (const path of listFiles()) texts.set(path, readerOf(path)?.(readFileSync(resolve(root, path), "utf8")) ?? []);

const exemptions: readonly Exemption[] = readFileSync(new URL("exemptions.jsonl", import.meta.url), "utf8")
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line));

const counts = new Map<string, number>();
const unused = new Set(exemptions);
let [passages, exempt, found] = [0, 0, 0];
for (const [path, read] of texts) {
  for (const passage of read) {
    passages += 1;
    const whole = passage.text.replace(/\s+/g, " ");
    const exempted = exemptions.filter(({ file, text }) => file === path && whole.includes(text));
    const hits = findPatterns(passage);
    const left = hits.filter((hit) => !exempted.some(({ pattern }) => pattern === hit.pattern));
    for (const each of exempted) if (hits.some(({ pattern }) => pattern === each.pattern)) unused.delete(each);
    if (left.length < hits.length) exempt += 1;
    if (left.length > 0) found += 1;
    for (const { pattern, line, text } of left) {
      counts.set(pattern, (counts.get(pattern) ?? 0) + 1);
      console.log(`${path}:${line}: ${pattern}: ${text}`);
    }
  }
}

if (counts.size > 0) console.log();
for (const { name, instead } of prosePatterns) {
  if (counts.has(name)) console.log(`${counts.get(name)} x ${name}: ${instead}`);
}
const share = passages === 0 ? 0 : exempt / passages;
console.log(`matches in ${found} of ${passages} texts, ${exempt} exempt (${(share * 100).toFixed(1)} %)`);
if (share > maxExempt) console.log(`at most ${maxExempt * 100} % may be exempt`);
if (positionals.length > 0) unused.clear();
for (const { file, text } of unused) console.log(`exemptions.jsonl: nothing to exempt in ${file}: ${text}`);
if (found > 0 || unused.size > 0 || share > maxExempt) process.exitCode = 1;
