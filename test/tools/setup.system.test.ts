import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
let machine: string;

/** Puts a command on the machine's PATH, before the real ones. */
async function command(name: string, script: string): Promise<void> {
  await writeFile(join(machine, "bin", name), `#!/bin/sh\n${script}\n`);
  await chmod(join(machine, "bin", name), 0o755);
}

/** Runs shell lines on the machine after reading setup.sh. */
function shell(lines: string) {
  const env = { PATH: `${join(machine, "bin")}:/usr/bin:/bin`, HOME: machine };
  const options = { cwd: machine, env, encoding: "utf8", timeout: 20_000 } as const;
  const { status, stdout, stderr } = spawnSync("sh", ["-c", `. tools/setup.sh\n${lines}`], options);
  return { status, stdout, stderr };
}

beforeEach(async () => {
  machine = await mkdtemp(join(tmpdir(), "pilothouse-machine-"));
  await mkdir(join(machine, "bin"));
  await cp(join(root, "tools/setup.sh"), join(machine, "tools/setup.sh"));
  await writeFile(join(machine, "package-lock.json"), "{}");
  await command("node", 'echo "20"');
});

afterEach(async () => {
  await rm(machine, { recursive: true, force: true });
});

test("a step that succeeds prints one line", () => {
  const { status, stderr } = shell('step "counting" seq 3');
  expect(stderr).toMatch(/^pilothouse: counting \.\.\. \d s\n$/);
  expect(status).toBe(0);
});

test("a step that fails prints its command's output", () => {
  const { status, stderr } = shell('step "listing" sh -c "echo no such thing; exit 3"');
  expect(stderr).toBe("pilothouse: listing ... failed\nno such thing\n");
  expect(status).toBe(3);
});

test("a step prints notes of its command immediately, also when it succeeds", () => {
  const { stderr } = shell('step "installing" sh -c "echo quiet; echo waiting for a lock >&4"');
  expect(stderr).toMatch(/^pilothouse: installing \.\.\.waiting for a lock\n \d s\n$/);
});

test("packages are installed once for each lock file", async () => {
  await command("npm", "echo npm $1 >> calls; mkdir -p node_modules");
  const { stdout } = shell("need_packages; need_packages; echo '{ }' > package-lock.json; need_packages; cat calls");
  expect(stdout).toBe("npm ci\nnpm ci\n");
});

test("a manual npm installation counts as installed", async () => {
  await command("npm", "echo npm $1 >> calls");
  expect(shell("mkdir node_modules; touch node_modules/.package-lock.json; need_packages; cat calls").stderr).toContain(
    "calls: No such file",
  );
});

test("the prepare script generates code once, and only if the generators are installed", async () => {
  await cp(join(root, "tools/prepare.sh"), join(machine, "tools/prepare.sh"));
  await writeFile(
    join(machine, "tools/generate-code.sh"),
    "mkdir -p src/gen; touch src/gen/.stamp; echo generated >> calls",
  );
  const types = "sdk/typescript/src/gen";
  await writeFile(
    join(machine, "tools/generate-sdk.sh"),
    `mkdir -p ${types}; touch ${types}/schema.ts; echo types >> calls`,
  );
  await command("node", 'echo "24"');
  const { status, stdout, stderr } = shell(
    "sh tools/prepare.sh; ls; mkdir -p node_modules/.bin proto gateway/web gateway/openapi src/platform/browsers workers/injected sdk/typescript" +
      "; touch buf.gen.yaml tools/bundle-injected.ts tools/sdk-document.ts sdk/typescript/package-lock.json" +
      "; cp bin/node node_modules/.bin/buf; PREPARE=off sh tools/prepare.sh; echo --; sh tools/prepare.sh; sh tools/prepare.sh; cat calls",
  );
  expect(stdout).toBe("bin\npackage-lock.json\ntools\n--\ngenerated\ntypes\n");
  expect(stderr).toMatch(
    /^pilothouse: generating code \.\.\. \d s\npilothouse: generating the types of the SDK \.\.\. \d s\n$/,
  );
  expect(status).toBe(0);
});

test("a failed installation of packages ends in one sentence below npm's reason", async () => {
  await command("npm", "echo npm error network; exit 1");
  const { status, stderr } = shell("need_packages; echo went on >&2");
  expect(stderr.split("\n").slice(1)).toEqual([
    "npm error network",
    "pilothouse: the packages could not be installed; npm's reason is above.",
    "",
  ]);
  expect(status).toBe(1);
});

test("a machine without Node 24 ends in one sentence", () => {
  const { status, stderr } = shell("PATH=$PWD/bin; need_node");
  expect(stderr).toMatch(/^pilothouse: Node\.js 24 or later is needed .*\n$/);
  expect(status).toBe(1);
});

test("setup uses Node 24 of the machine when the packages' one does not run", async () => {
  await mkdir(join(machine, "node_modules/.bin"), { recursive: true });
  await writeFile(join(machine, "node_modules/.bin/node"), "not for this machine", { mode: 0o755 });
  await command("node", 'echo "24"');
  const { status, stdout } = shell("need_node; command -v node");
  expect(stdout).toBe(`${join(machine, "bin/node")}\n`);
  expect(status).toBe(0);
});

test("an interrupt ends the step and its command", async () => {
  const lines = '. tools/setup.sh\nexec 3>&1\nstep "waiting" sh -c "echo begun >&3; exec sleep 600"\necho went on';
  const child = spawn("sh", ["-c", lines], { cwd: machine, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const group = -(child.pid ?? Number.NaN);
  await once(child.stdout, "data");
  process.kill(group, "SIGINT");
  const [code] = await once(child, "exit");
  expect(code).toBe(130);
  expect(await child.stdout.toArray()).toEqual([]);
  expect(() => process.kill(group, 0)).toThrow("ESRCH");
});
