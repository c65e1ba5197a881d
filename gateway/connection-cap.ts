import type { BlockList, Socket } from "node:net";
import { isListed, plainAddress } from "./peer.ts";

// Maximum open connections per client address. A browser opens up to 6 per host; an office behind one address opens a
// few hundred. Each connection costs about 30 kB.
const maxPerAddress = 1_024;

/**
 * Returns whether a connection is accepted. Closes the connection if its client address has too many open connections.
 */
export type ConnectionCap = (socket: Socket) => boolean;

/**
 * Creates the cap on open connections per client address, over all public ports together. Trusted proxies are exempt,
 * since each serves many clients.
 */
export function createConnectionCap(trustedProxies: BlockList, max = maxPerAddress): ConnectionCap {
  const open = new Map<string, number>();
  return (socket) => {
    const address = plainAddress(socket.remoteAddress);
    if (isListed(trustedProxies, address)) return true;
    const count = open.get(address) ?? 0;
    if (count >= max) {
      socket.destroy();
      return false;
    }
    open.set(address, count + 1);
    socket.once("close", () => {
      const left = (open.get(address) ?? 1) - 1;
      if (left === 0) {
        open.delete(address);
      } else {
        open.set(address, left);
      }
    });
    return true;
  };
}
