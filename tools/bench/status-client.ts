// Follows the status by streams of Server-Sent Events, in a process of its own: so many from each of so many loopback
// addresses. Its arguments are the port, the addresses, and the streams of each.
import { once } from "node:events";
import { createConnection } from "node:net";

/** What the parent hears: how many follow, what they have heard, and what went wrong. */
export type FollowerNews =
  | { readonly following: number }
  | { readonly heard: readonly Hearing[] }
  | { readonly lost: string };

/** How many followers have heard so many statuses since the last report, and when the first and the last of them did. */
export interface Hearing {
  readonly statuses: number;
  followers: number;
  readonly first: number;
  last: number;
}

const send = (news: FollowerNews): unknown => process.send?.(news);
const [port = 0, addresses = 0, each = 0] = process.argv.slice(2).map(Number);

/** By the count of statuses that a follower has heard, the one that it began with among them. */
const heard = new Map<number, Hearing>();

/** Opens a stream; resolves when it has told how the service is. */
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
    // As much as may be the beginning of a mark.
    rest = text.slice(-6);
    if (news === 0) return;
    statuses += news;
    const at = performance.timeOrigin + performance.now();
    const hearing = heard.get(statuses) ?? { statuses, followers: 0, first: at, last: at };
    heard.set(statuses, hearing);
    hearing.followers += 1;
    hearing.last = at;
    first.resolve();
  });
  await once(socket, "connect");
  socket.write("GET /v1/status/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await first.promise;
}

setInterval(() => {
  if (heard.size > 0) send({ heard: [...heard.values()] });
  heard.clear();
}, 100);
process.on("disconnect", () => process.exit(0));

for (let turn = 0; turn < each; turn += 1)
  await Promise.all(Array.from({ length: addresses }, (_, index) => follow(`127.0.1.${index + 1}`)));
send({ following: addresses * each });
