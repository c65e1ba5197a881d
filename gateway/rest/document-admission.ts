import type { FastifyReply, FastifyRequest } from "fastify";
import { createStreamSlots } from "../../src/limits/stream-slots.ts";
import { networkOf } from "../../src/platform/client-network.ts";
import { rateLimitHeaders } from "../gateway-call.ts";
import { refuseEmpty } from "../policies/address-bucket.ts";
import { peerOf, type TransportParts } from "../transport-parts.ts";
import { isClosed } from "./mount.ts";

/** Maximum unread documents per client address. Each costs the memory of a stream, about 20 kB. */
const maxUnread = 256;

/**
 * Creates the function that admits GET and HEAD requests for documents. Each request draws from the `documents` bucket
 * of its address; if the bucket is empty, the function throws `rate-limited`. The function returns false if the client
 * has disconnected. It also returns false if the client's address has too many unread documents, and closes the stream
 * (over HTTP/1.1: the connection) without a response.
 */
export function documentAdmission(
  transport: TransportParts,
): (request: FastifyRequest, reply: FastifyReply) => boolean {
  const unread = createStreamSlots();
  return ({ raw, method }, reply) => {
    if (method !== "GET" && method !== "HEAD") return true;
    const { clientAddress } = peerOf(raw, transport);
    if (isClosed(reply.raw)) return false;
    const slot = unread.take(networkOf(clientAddress, { v4: 32, v6: 64 }), maxUnread);
    if (!slot.isGranted) {
      reply.hijack();
      raw.socket.destroy();
      return false;
    }
    reply.raw.once("close", slot.release);
    const state = transport.dispatcher.drawForDocument(clientAddress);
    if (!state.allowed) {
      // The headers must name one of the four public buckets, which do not include `documents`.
      const { capacity } = transport.dispatcher.peekAddress(clientAddress);
      reply.headers(rateLimitHeaders({ ...state, bucket: "global", capacity, remaining: 0 }));
    }
    refuseEmpty(state, "your address");
    return true;
  };
}
