import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { guardTar } from "../../workers/profiles/tar-guard.ts";

let directory = "";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "guard-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Packs a directory that `make` fills, and sends it through the guard in parts of a size. */
async function guard(
  name: string,
  make: (path: string) => void,
  partSize = 65_536,
): Promise<{ sent: Buffer; got: Buffer }> {
  const path = join(directory, name);
  mkdirSync(path);
  make(path);
  const { stdout } = spawnSync("tar", ["--create", "--format=pax", "--no-recursion", "--null", "--files-from=-"], {
    cwd: path,
    input: spawnSync("find", [".", "-mindepth", "1", "-print0"], { cwd: path, maxBuffer: 2 ** 30 }).stdout,
    maxBuffer: 2 ** 30,
  });
  async function* parts(): AsyncGenerator<Buffer> {
    for (let at = 0; at < stdout.length; at += partSize) yield stdout.subarray(at, at + partSize);
  }
  const passed: Buffer[] = [];
  for await (const part of guardTar(parts())) passed.push(part);
  return { sent: stdout, got: Buffer.concat(passed) };
}

test.for([1, 511, 513, 65_536])("passes regular files on unchanged, in parts of %d bytes", async (partSize) => {
  const make = (path: string): void => {
    writeFileSync(join(path, "a"), "x".repeat(1_000));
    writeFileSync(join(path, `${"long".repeat(50)}.leveldb`), "");
    writeFileSync(join(path, "-n"), "y".repeat(512));
  };
  const { sent, got } = await guard(`files-${partSize}`, make, partSize);
  expect(got.equals(sent)).toBe(true);
});

test.for<[string, (path: string) => void, string]>([
  ["a link", (path) => symlinkSync("/etc/passwd", join(path, "link")), "other than regular files"],
  [
    "a second name of a file",
    (path) => {
      writeFileSync(join(path, "a"), "x");
      linkSync(join(path, "a"), join(path, "b"));
    },
    "other than regular files",
  ],
  ["a directory", (path) => mkdirSync(join(path, "sub")), "other than regular files"],
])("refuses %s", async ([name, make, message]) => {
  await expect(guard(name, make)).rejects.toThrow(message);
});

test.for(["77777777777", "\xff\xff", "-1"])("refuses a file of the size %j", async (size) => {
  const header = Buffer.alloc(512);
  header.write("Default/huge");
  header.write(size, 124, "latin1");
  header.write("0", 156);
  async function* parts(): AsyncGenerator<Buffer> {
    yield header;
  }
  await expect(guardTar(parts()).next()).rejects.toThrow("with an invalid size");
});
