import type { BlockList, Socket } from "node:net";
import { isListed, plainAddress } from "./peer.ts";

// Most open connections per client address: a browser uses 6, an office some hundreds. Each costs some 30 kB.
const maxPerAddress = 1_024;

/** Returns true to accept a connection; closes it if its client address has too many open. */
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
