import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

/** The protocol that a browser says it speaks. */
interface BrowserProtocol {
  /** Its major version. */
  readonly version: number;
  /** Its commands, as `Page.navigate`. */
  readonly methods: readonly string[];
}

/** Asks a browser for its protocol, by the port that it has for that. */
export async function readProtocol(executable: string): Promise<BrowserProtocol> {
  const directory = await mkdtemp(join(tmpdir(), "pilothouse-protocol-"));
  const flags = ["--headless", "--remote-debugging-port=0", `--user-data-dir=${directory}`, "about:blank"];
  // Chromium does not run as root with its sandbox.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  // A group of its own: what is installed may be a script that starts the browser.
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
