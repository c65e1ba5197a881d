// Finds text that is not plain technical English in comments, Markdown, messages, and subjects of commits since the commit
// that added this file. Exits with 1 for a match of patterns.json that exemptions.jsonl does not list.
//   node tools/prose/main.ts [--root=<tree>] [paths]
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
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
const mostExempt = 0.03;

/** Generated files, data, and texts of other authors. */
const foreign = /^(?:src\/gen|test\/contract|test\/support\/pages|proto\/(?:buf|google)|node_modules)\//;

const { values, positionals } = parseArgs({ options: { root: { type: "string" } }, allowPositionals: true });

function git(cwd: string, ...args: string[]): string {
  return execFileSync("git", ["-C", cwd, ...args], { encoding: "utf8", maxBuffer: 1 << 28 });
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
  const paths = positionals.map((path) => (isAbsolute(path) ? relative(root, path) : path));
  const listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...paths).split("\0");
  return listed.filter((path) => readerOf(path) && !foreign.test(path) && existsSync(resolve(root, path)));
}

/** Reads the subjects of commits after the one that added this tool. */
function readSubjects(): Map<string, Passage[]> {
  const added = git(root, "log", "--diff-filter=A", "--format=%H", "--", "tools/prose/main.ts")
    .trim()
    .split("\n")
    .at(-1);
  if (!added) return new Map();
  const log = git(root, "log", "--no-merges", "--format=%h %s", `${added}..HEAD`).split("\n").filter(Boolean);
  return new Map(
    log.map((line) => {
      const [hash = "", ...words] = line.split(" ");
      return [`commit ${hash}`, [{ kind: "subject", line: 1, text: words.join(" ") }]];
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
let [passages, exempt, found] = [0, 0, 0];
for (const [path, read] of texts) {
  for (const passage of read) {
    passages += 1;
    const whole = passage.text.replace(/\s+/g, " ");
    const exempted = exemptions.filter(({ file, text }) => file === path && whole.includes(text));
    const hits = findPatterns(passage);
    const left = hits.filter((hit) => !exempted.some(({ pattern }) => pattern === hit.pattern));
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
if (share > mostExempt) console.log(`at most ${mostExempt * 100} % may be exempt`);
if (found > 0 || share > mostExempt) process.exitCode = 1;
