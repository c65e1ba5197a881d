// node webhook-receiver.ts: receives webhooks in its own process, and reports each arrival to its parent.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Messages to the parent: first the port, then new arrivals. */
export type ReceiverNews = { readonly port: number } | { readonly arrivals: readonly (readonly [string, number])[] };

const send = (news: ReceiverNews): unknown => process.send?.(news);

/** Path, event and time in milliseconds of the system clock. */
let arrivals: [string, number][] = [];

const server = createServer((request, response) => {
  arrivals.push([`${request.url} ${request.headers["webhook-id"]}`, performance.timeOrigin + performance.now()]);
  request.resume();
  // Endpoints under this path never respond.
  if (request.url?.startsWith("/hang")) return;
  request.on("end", () => response.writeHead(200).end());
});
server.listen(0, "127.0.0.1", 4_096, () => send({ port: (server.address() as AddressInfo).port }));
setInterval(() => {
  if (arrivals.length > 0) send({ arrivals });
  arrivals = [];
}, 20);
process.on("disconnect", () => process.exit(0));
