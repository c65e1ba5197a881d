import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { GetScene } from "./scene.ts";

const run = promisify(execFile);
const pngSignature = "89504e470d0a1a0a";

/** Returns the shell lines that the service prints at start, without indentation. */
function pastedLines(printed: string): string {
  const lines = printed.split("\n");
  const from = lines.findIndex((line) => line.startsWith("Or paste this"));
  const to = lines.findIndex((line) => line.startsWith("Ctrl-C"));
  return lines.slice(from + 1, to).join("\n");
}

/** Calls of curl to the REST API. */
export function curlTests(scene: GetScene): void {
  test("the printed lines work when pasted into a shell", async () => {
    const { welcome } = scene();
    const directory = await mkdtemp(join(tmpdir(), "pilothouse-curl-"));
    try {
      // Otherwise bash reads the machine's startup files, since its stdin is a socket here.
      const args = ["--norc", "-euo", "pipefail", "-c", pastedLines(welcome)];
      const { stdout, stderr } = await run("bash", args, { cwd: directory, timeout: 60_000 });
      expect(stderr).toBe("");
      expect(stdout).toMatch(/^ses_[0-9a-z]{26}\n/);
      expect(stdout).toContain('"http_status":200');
      expect(stdout).not.toContain("/errors/");
      const [png, html, pdf] = await Promise.all(
        ["page.png", "page.html", "page.pdf"].map((name) => readFile(join(directory, name))),
      );
      expect(png?.subarray(0, 8).toString("hex")).toBe(pngSignature);
      expect([png?.readUInt32BE(16), png?.readUInt32BE(20)]).toEqual([1280, 720]);
      expect(html?.toString()).toContain("Thank you, Ada!");
      expect(pdf?.subarray(0, 5).toString()).toBe("%PDF-");
      expect(pdf?.subarray(-16).toString()).toContain("%%EOF");
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  test.each(["--http1.1", "--http2-prior-knowledge"])("curl %s reaches REST and Connect", async (version) => {
    const { service } = scene();
    const common = [
      version,
      "-sS",
      "-H",
      `Authorization: Bearer ${service.key}`,
      "-H",
      "Content-Type: application/json",
    ];
    const rest = await run("curl", [...common, "-w", "\n%{http_version} %{http_code}", `${service.url}/v1/sessions`]);
    expect(rest.stdout).toMatch(/^\{"data":\[.*\n(1\.1|2) 200$/s);
    const connect = await run("curl", [...common, "-d", "{}", `${service.url}/pilothouse.v1.SessionService/List`]);
    expect(connect.stdout).toMatch(/^\{("data":\[.*\])?.*\}$/s);
  });
}
