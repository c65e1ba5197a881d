import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openWorkshop } from "../clients/generated-client.ts";

const cli = join(import.meta.dirname, "../../sdk/cli");
const maxBytes = 512 * 1024;

test("its package installs without dependencies, and runs", async () => {
  await using project = await openWorkshop("node_modules/.bin");
  const packed = await promisify(execFile)("npm", ["pack", "--pack-destination", project.directory], { cwd: cli });
  const tarball = packed.stdout.trim().split("\n").at(-1) ?? "";
  expect((await stat(join(project.directory, tarball))).size).toBeLessThan(maxBytes);
  await project.run("npm", "install", `./${tarball}`, "--no-audit", "--no-fund");
  expect((await project.run("ls", "node_modules")).stdout).toBe("@pilothouse\n");
  expect((await project.run("pilothouse", "--help")).stdout).toContain("open URL");
  await expect(project.run("pilothouse", "mcp", "--none")).rejects.toThrow("--none");
}, 180_000);
