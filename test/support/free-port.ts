import { createSocket } from "node:dgram";
import { createServer } from "node:net";

// Below the ports that systems give to outgoing connections (32768 and up on Linux), so that none of those takes a port
// between the look and its use.
const first = 20_000;
const range = 12_000;
let next = process.pid % range;

/** Finds loopback ports that nothing listens on, all different, and that no other process is given while this one runs. */
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

/** Takes the UDP port of that number, which nobody uses, and has it until this process ends: it is the sign for others. */
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
