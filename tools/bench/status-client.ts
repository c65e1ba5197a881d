// Follows the status by Server-Sent Events in its own process, with several streams from each of several loopback
// addresses. Arguments: port, number of addresses, streams per address.
import { once } from "node:events";
import { createConnection } from "node:net";

/** Messages to the parent: number of followers, received statuses, and errors. */
export type FollowerNews =
  | { readonly following: number }
  | { readonly received: readonly Reception[] }
  | { readonly lost: string };

/** Number of followers with a given count of statuses since the last report, and the first and last time. */
export interface Reception {
  readonly statuses: number;
  followers: number;
  readonly first: number;
  last: number;
}

const send = (news: FollowerNews): unknown => process.send?.(news);
const [port = 0, addresses = 0, each = 0] = process.argv.slice(2).map(Number);

/** Results by the number of statuses that a follower has received, including the initial one. */
const received = new Map<number, Reception>();

/** Opens a stream. Resolves at the first status. */
async function follow(address: string): Promise<void> {
  const socket = createConnection({ port, host: "127.0.0.1", localAddress: address });
  const first = Promise.withResolvers<void>();
  let statuses = 0;
  let rest = "";
  socket.on("error", (error) => send({ lost: error.message }));
  socket.on("close", () => send({ lost: `a stream of ${address} has ended` }));
  socket.on("data", (bytes: Buffer) => {
    const text = rest + bytes.toString("latin1");
    if (statuses === 0 && text.startsWith("HTTP/1.1 ") && !text.startsWith("HTTP/1.1 200")) send({ lost: text });
    const news = text.split("\ndata: ").length - 1;
    // Keeps the end of the text, which may be the start of a marker.
    rest = text.slice(-6);
    if (news === 0) return;
    statuses += news;
    const at = performance.timeOrigin + performance.now();
    const reception = received.get(statuses) ?? { statuses, followers: 0, first: at, last: at };
    received.set(statuses, reception);
    reception.followers += 1;
    reception.last = at;
    first.resolve();
  });
  await once(socket, "connect");
  socket.write("GET /v1/status/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await first.promise;
}

setInterval(() => {
  if (received.size > 0) send({ received: [...received.values()] });
  received.clear();
}, 100);
process.on("disconnect", () => process.exit(0));

for (let turn = 0; turn < each; turn += 1)
  await Promise.all(Array.from({ length: addresses }, (_, index) => follow(`127.0.1.${index + 1}`)));
send({ following: addresses * each });
