import { createServer } from "node:net";

// Below the ports that systems give to outgoing connections (32768 and up on Linux), so that none of those takes a port
// between the look and its use. Each of vitest's processes looks in a range of its own, and so does a nested run of
// another user.
const range = 1_000;
const pool = Number(process.env.VITEST_POOL_ID ?? 0) % 5;
const user = process.getuid?.() === 0 ? 0 : 1;
const first = 20_000 + (user * 5 + pool) * range;
let next = process.pid % range;

/** Finds loopback ports that nothing listens on, all different. */
export async function freePorts<const Names extends readonly string[]>(
  ...names: Names
): Promise<Record<Names[number], number>> {
  const ports: [string, number][] = [];
  for (const name of names) {
    ports.push([name, await freePort()]);
  }
  return Object.fromEntries(ports) as Record<Names[number], number>;
}

async function freePort(): Promise<number> {
  for (let tries = 0; tries < range; tries += 1) {
    const port = first + next;
    next = (next + 1) % range;
    if (await isFree(port)) return port;
  }
  throw new Error(`no port from ${first} to ${first + range - 1} is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
