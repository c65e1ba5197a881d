import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const sound: Record<string, string> = {
  "src/platform/clock.ts": "export const clock = 1;",
  "src/platform/traces/tracing.ts": 'import "@opentelemetry/sdk-trace"; export const tracing = 1;',
  "src/platform/traces/service-traces.ts":
    'import type { tracing } from "./tracing.ts"; export const load = (): Promise<{ tracing: typeof tracing }> => import("./tracing.ts");',
  "src/platform/postgres/database.ts": 'import { clock } from "../clock.ts"; export const database = clock;',
  "src/gen/session_pb.ts": "export type Session = { id: string };",
  "src/kernel/call.ts": 'import type { clock } from "../platform/clock.ts"; export type Call = typeof clock;',
  "src/sessions/service.ts":
    'import { database } from "../platform/postgres/database.ts"; export const sessions = database;',
  "src/agents/service.ts": 'import { sessions } from "../sessions/service.ts"; export const agents = sessions;',
  "src/app/app.ts": 'export { agents } from "../agents/service.ts";',
  "gateway/main.ts": 'import { agents } from "../src/app/app.ts"; console.log(agents);',
  "workers/main.ts":
    'import { clock } from "../src/platform/clock.ts"; import type { Session } from "../src/gen/session_pb.ts"; export type S = Session; console.log(clock);',
  "workers/drain.ts": 'import { session } from "./session/session.ts"; export const drained = session;',
  "workers/base/log.ts": "export const log = 1;",
  "workers/injected/sight.ts": "export const sight = 1;",
  "workers/injected/text.ts": 'import { sight } from "./sight.ts"; export const text = sight;',
  "workers/injected/plain-text.ts": "export const plain = 1;",
  "workers/pages/world.ts":
    'import type { text } from "../injected/text.ts"; import { plain } from "../injected/plain-text.ts"; export type Text = typeof text; console.log(plain);',
  "workers/isolation/slot.ts": 'import { log } from "../base/log.ts"; export const slot = log;',
  "workers/session/session.ts": 'import { slot } from "../isolation/slot.ts"; export const session = slot;',
  "src/agents/turn.ts":
    'export async function turn() { using _lease = await import("./service.ts").then(() => null); }',
  "tools/tool.ts": "export const tool = 1;",
  "tools/bench/bench.ts": 'import "../../test/all.test.ts"; export const bench = 1;',
  "test/all.test.ts": 'import "../gateway/main.ts"; import "../workers/main.ts"; import "../tools/tool.ts";',
};

let project: string;

/** Writes a small valid project, with additional or replaced files. */
async function write(files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries({ ...sound, ...files })) {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), `${text}\n`);
  }
}

/** Runs the import law on the small project. */
function judge() {
  const options = { cwd: project, encoding: "utf8", timeout: 20_000 } as const;
  const { status, stderr } = spawnSync(process.execPath, ["tools/import-law.ts"], options);
  return { status, stderr };
}

beforeEach(async () => {
  project = await mkdtemp(join(tmpdir(), "pilothouse-law-"));
  await mkdir(join(project, "tools"));
  await symlink(join(root, "node_modules"), join(project, "node_modules"));
  for (const file of [".dependency-cruiser.json", "package.json", "tools/import-law.ts"]) {
    await cp(join(root, file), join(project, file));
  }
});

afterEach(async () => {
  await rm(project, { recursive: true, force: true });
});

test("a valid project passes", async () => {
  await write({});
  expect(judge()).toEqual({ status: 0, stderr: "" });
});

/** A forbidden import, and the start of the reported edge if it is not the file. */
type Broken = readonly [rule: string, path: string, text: string, edge?: string];

const featureCircle = "src/sessions -> src/agents";
const roomCircle = "workers/isolation -> workers/session";
const clockCircle = "src/platform/clock.ts -> src/platform/postgres/database.ts";

/** Forbidden imports by project, since a run takes half a second. No two cases of a project cause the same edge. */
const projects: readonly (readonly Broken[])[] = [
  [
    ["gateway-imports-no-worker", "gateway/transport-parts.ts", 'import "../workers/main.ts";'],
    ["src-imports-no-transport", "src/sessions/store.ts", 'import "../../gateway/main.ts";'],
    ["src-imports-no-transport", "src/platform/log.ts", 'import "../../workers/main.ts";'],
    ["workers-import-contract-and-platform", "workers/pool.ts", 'import type { agents } from "../src/app/app.ts";'],
    [
      "workers-hold-no-credentials",
      "src/platform/clock.ts",
      'import "pg"; export const clock = 1;',
      "workers/main.ts -> ..",
    ],
    ["platform-imports-no-feature", "src/platform/jobs.ts", 'import type { sessions } from "../sessions/service.ts";'],
    ["kernel-imports-platform", "src/kernel/role.ts", 'import type { sessions } from "../sessions/service.ts";'],
    ["features-import-no-app", "src/agents/parts.ts", 'import type { agents } from "../app/app.ts";'],
    ["files-of-src-are-in-folders", "src/time.ts", 'import type { clock } from "./platform/clock.ts";'],
    [
      "features-are-not-circular",
      "src/sessions/rules.ts",
      'import type { agents } from "../agents/service.ts";',
      featureCircle,
    ],
    [
      "folders-of-a-worker-are-not-circular",
      "workers/isolation/pool.ts",
      'import type { session } from "../session/session.ts";',
      roomCircle,
    ],
    ["base-of-a-worker-imports-no-folder", "workers/base/log.ts", 'import type { sight } from "../injected/sight.ts";'],
    ["injected-code-imports-only-itself", "workers/injected/text.ts", 'import "node:fs";'],
    ["nothing-imports-tests", "tools/tool.ts", 'import "./bench/bench.ts"; export const tool = 1;'],
    [
      "imports-resolve",
      "gateway/turn.ts",
      'export async function turn() { await using _lease = await import("./gone.ts"); }',
    ],
  ],
  [
    ["workers-hold-no-credentials", "workers/pool.ts", 'import "../src/platform/postgres/database.ts";'],
    [
      "features-are-not-circular",
      "src/sessions/rules.ts",
      'type Agents = typeof import("../agents/service.ts");',
      featureCircle,
    ],
    [
      "folders-of-a-worker-are-not-circular",
      "workers/isolation/pool.ts",
      'declare const sessions: typeof import("../session/session.ts");',
      roomCircle,
    ],
    [
      "injected-code-imports-only-itself",
      "workers/injected/text.ts",
      'import { clock } from "../../src/platform/clock.ts";',
    ],
    [
      "injected-code-is-bundled",
      "workers/base/look.ts",
      'import { sight } from "../injected/sight.ts"; export const look = sight;',
    ],
    [
      "modules-are-not-circular",
      "src/platform/clock.ts",
      'import "./postgres/database.ts"; export const clock = 1;',
      clockCircle,
    ],
    ["nothing-imports-tests", "src/sessions/store.ts", 'import "../../test/all.test.ts";'],
    ["nothing-imports-tools", "gateway/transport-parts.ts", 'import "../tools/tool.ts";'],
  ],
  [
    ["top-of-a-worker-is-not-imported", "workers/isolation/pool.ts", 'import type { drained } from "../drain.ts";'],
    [
      "modules-are-not-circular",
      "workers/injected/sight.ts",
      'import type { text } from "./text.ts"; export const sight = 1; export type Text = typeof text;',
    ],
    [
      "modules-are-not-circular",
      "src/platform/clock.ts",
      'import type { database } from "./postgres/database.ts"; export const clock = 1;',
      clockCircle,
    ],
    ["no-development-packages", "gateway/transport-parts.ts", 'import "vitest";'],
  ],
  [
    [
      "modules-are-not-circular",
      "src/platform/clock.ts",
      'declare const data: typeof import("./postgres/database.ts"); export const clock = 1;',
      clockCircle,
    ],
    ["imports-resolve", "gateway/transport-parts.ts", 'import "./gone.ts";'],
    ["sdk-of-traces-is-loaded-on-demand", "workers/base/log.ts", 'import "@opentelemetry/core"; export const log = 1;'],
    ["sdk-of-traces-is-loaded-on-demand", "src/sessions/store.ts", 'import "../platform/traces/tracing.ts";'],
  ],
];

test.each(projects.entries().toArray())("each rule refuses its imports in project %d", async (_index, cases) => {
  await write(Object.fromEntries(cases.map(([, path, text]) => [path, text])));
  const { status, stderr } = judge();
  const lines = stderr.split("\n");
  const missing = cases.filter(
    ([rule, path, , edge = `${path} -> `]) => !lines.some((line) => line.startsWith(`${rule}: ${edge}`)),
  );
  expect(missing, stderr).toEqual([]);
  expect(status).toBe(1);
});

test("a file directly in src is refused, even without imports", async () => {
  await write({
    "src/limits.ts": "export type Limit = number;",
    "src/sessions/rules.ts": 'import type { Limit } from "../limits.ts"; export type Rule = Limit;',
  });
  const stderr = "files-of-src-are-in-folders: src/sessions/rules.ts -> src/limits.ts\n";
  expect(judge()).toEqual({ status: 1, stderr });
});

test("a folder without any module is refused", async () => {
  await write({ "test/all.test.ts": "export {};" });
  await rm(join(project, "workers"), { recursive: true });
  await mkdir(join(project, "workers"));
  const { status, stderr } = judge();
  expect(stderr).toContain("no module was read in workers/");
  expect(status).toBe(1);
});
