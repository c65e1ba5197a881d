import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

/** Protocol that a browser reports. */
interface BrowserProtocol {
  /** Major version of the browser. */
  readonly version: number;
  /** Commands, such as `Page.navigate`. */
  readonly methods: readonly string[];
}

/** Reads the protocol from a browser's debugging port. */
export async function readProtocol(executable: string): Promise<BrowserProtocol> {
  const directory = await mkdtemp(join(tmpdir(), "pilothouse-protocol-"));
  const flags = ["--headless", "--remote-debugging-port=0", `--user-data-dir=${directory}`, "about:blank"];
  // Chromium's sandbox does not work as root.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  // Own process group, because the executable may be a script that starts the browser.
  const browser = spawn(executable, [...sandbox, ...flags], { detached: true, stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(async () => {
    if (browser.pid !== undefined && browser.exitCode === null) process.kill(-browser.pid, "SIGKILL");
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  for await (const line of createInterface(browser.stderr)) {
    const [, host] = /^DevTools listening on ws:\/\/([^/]+)\//.exec(line) ?? [];
    if (host !== undefined) return await readFrom(`http://${host}/json`);
  }
  throw new Error(`${executable} has no port for debuggers`);
}

async function readFrom(address: string): Promise<BrowserProtocol> {
  const { Browser: product } = await (await fetch(`${address}/version`)).json();
  const { domains } = await (await fetch(`${address}/protocol`)).json();
  const methods = domains.flatMap(({ domain, commands = [] }: { domain: string; commands?: { name: string }[] }) =>
    commands.map(({ name }) => `${domain}.${name}`),
  );
  return { version: Number(/\/(\d+)\./.exec(product)?.[1]), methods };
}
