// Receives webhooks in a process of its own, and tells its parent when each has come: node webhook-receiver.ts
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** What a parent hears: first the port, then what has come since. */
export type ReceiverNews = { readonly port: number } | { readonly arrivals: readonly (readonly [string, number])[] };

const send = (news: ReceiverNews): unknown => process.send?.(news);

/** By path and event; milliseconds of the system's clock. */
let arrivals: [string, number][] = [];

const server = createServer((request, response) => {
  arrivals.push([`${request.url} ${request.headers["webhook-id"]}`, performance.timeOrigin + performance.now()]);
  request.resume();
  // Endpoints under this path never answer.
  if (request.url?.startsWith("/hang")) return;
  request.on("end", () => response.writeHead(200).end());
});
server.listen(0, "127.0.0.1", 4_096, () => send({ port: (server.address() as AddressInfo).port }));
setInterval(() => {
  if (arrivals.length > 0) send({ arrivals });
  arrivals = [];
}, 20);
process.on("disconnect", () => process.exit(0));
