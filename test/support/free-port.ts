import { createSocket } from "node:dgram";
import { createServer } from "node:net";

// Below the ephemeral ports (32768 and up on Linux), so that no outgoing connection takes a port before its use.
const first = 20_000;
const range = 12_000;
let next = process.pid % range;

/** Finds distinct unused loopback ports and reserves them for the lifetime of this process. */
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
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
  throw new Error(`no port from ${first} to ${first + range - 1} is free`);
}

/** Binds the UDP port of that number until this process exits, which marks the port as reserved for other processes. */
function reserve(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const sign = createSocket("udp4").unref();
    sign.once("error", () => sign.close(() => resolve(false)));
    sign.bind({ port, address: "127.0.0.1", exclusive: true }, () => resolve(true));
  });
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
