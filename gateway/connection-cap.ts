import type { BlockList, Socket } from "node:net";
import { isListed, plainAddress } from "./peer.ts";

// Connections that are open at once: a browser has 6, a busy program or an office some hundreds. Each costs some 30 kB.
const mostOfAddress = 1_024;

/** Takes a connection, or closes it when its client address has too many. */
export type ConnectionCap = (socket: Socket) => boolean;

/**
 * Makes the bound on the connections that one client address may have open, over all public ports together. Trusted
 * proxies have none: behind one of them stand many clients.
 */
export function createConnectionCap(trustedProxies: BlockList, most = mostOfAddress): ConnectionCap {
  const open = new Map<string, number>();
  return (socket) => {
    const address = plainAddress(socket.remoteAddress);
    if (isListed(trustedProxies, address)) return true;
    const count = open.get(address) ?? 0;
    if (count >= most) {
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
